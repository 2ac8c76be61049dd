"""A PostgreSQL of the tests' own, thrown away afterwards."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

OPTIONS = "-c fsync=off -c synchronous_commit=off -c full_page_writes=off -c shared_buffers=32MB"


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """The address of a server that is started here; skipped where it is not installed."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    programs = found[-1].parent if found else Path(shutil.which("initdb") or "none").parent
    if not (programs / "initdb").exists():
        pytest.skip("PostgreSQL is not installed here")
    folder = Path(tempfile.mkdtemp(prefix="pg-"))
    owner: dict[str, object] = {}
    if os.getuid() == 0:  # it refuses to run as root
        account = pwd.getpwnam("postgres")
        os.chown(folder, account.pw_uid, account.pw_gid)
        owner = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}

    def call(*command: str) -> None:
        with (folder.parent / f"{folder.name}.log").open("w") as log:
            subprocess.run(command, cwd=folder, check=True, stdout=log, stderr=log, **owner)  # type: ignore[call-overload]

    data, log = str(folder / "data"), str(folder / "log")
    call(str(programs / "initdb"), "-D", data, "-U", "test", "-A", "trust", "--no-sync")
    control = [str(programs / "pg_ctl"), "-D", data, "-w"]
    call(*control, "-l", log, "-o", f"-k {folder} -c listen_addresses= {OPTIONS}", "start")
    try:
        yield f"postgresql://test@/{{}}?host={folder}"
    finally:
        call(*control, "-m", "immediate", "stop")
        shutil.rmtree(folder, ignore_errors=True)
        (folder.parent / f"{folder.name}.log").unlink(missing_ok=True)


@pytest.fixture
def new_database(server: str) -> Callable[[], str]:
    """Makes the address of one more empty database."""
    import psycopg

    numbers = count(_databases())

    def make() -> str:
        name = f"test_{next(numbers)}"
        with psycopg.connect(server.format("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}".encode())
        return server.format(name)

    return make


def _databases(start: Iterator[int] = count(0, 1000)) -> int:  # noqa: B008 - one for all tests
    return next(start)
