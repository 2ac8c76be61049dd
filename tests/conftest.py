"""Fixtures and options for all tests.

Every test has a TMPDIR and a HOME of its own, and no archive unless it asks for one, so that
tests of this checkout, and of another one on the same machine, do not meet. pytest-xdist runs
tests in parallel; tests that share a fixture of their module run in one process.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

# On a busy machine any example may be slow; how fast things are is for benchmarks/ to say.
settings.register_profile("parsl_sizer", deadline=None)
settings.load_profile("parsl_sizer")

# Doctests of the package have no fixture from here.
os.environ["PARSL_SIZER_ARCHIVE"] = "off"

ROOT = Path(__file__).resolve().parents[1]
SLOW_FIRST = ("integration", "differential", "acceptance", "golden")
"""Folders whose tests take longest: they start first, so that no process is busy alone at the
end."""
LIMIT_S, LIMIT_LONG_S = 240, 3600
"""For one test, on a busy machine."""
OPTIONS = "-c fsync=off -c synchronous_commit=off -c full_page_writes=off -c shared_buffers=32MB"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--long", action="store_true", help="test for minutes what is else tested for seconds"
    )
    parser.addoption(
        "--update-golden", action="store_true", help="record the outputs of today in tests/golden"
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Start slow folders first."""
    items.sort(key=lambda item: not set(SLOW_FIRST).intersection(item.path.parts))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Run tests that share a fixture of their module in one process, and all others anywhere.

    The groups of `--dist loadgroup` are parts of node ids, which pytest 9.2 does not let xdist 3.8
    change.
    """
    from xdist.scheduler import LoadScopeScheduling

    class ByFixture(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            return file if has_module_fixture(ROOT / file) else nodeid

    return ByFixture(config, log)


@cache
def has_module_fixture(path: Path) -> bool:
    """Return whether a test module, or the conftest.py beside it, has a fixture of that scope."""
    files = (path, path.with_name("conftest.py"))
    return any(file.exists() and 'scope="module"' in file.read_text() for file in files)


@pytest.fixture(scope="session", autouse=True)
def session_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Make the folder of all TMPDIRs and HOMEs; its path is short, as those of sockets must be.

    What has the scope of a module or the session, engines for instance, uses it directly.
    """
    tmp_path_factory.getbasetemp()  # pytest looks for a place when it is first asked
    folder = Path(tempfile.mkdtemp(prefix="sizer-"))
    folder.chmod(0o711)  # PostgreSQL and Slurm run as users of their own
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MPLCONFIGDIR", str(folder / "matplotlib"))  # listing fonts takes seconds
        for name in list(os.environ):
            if name.startswith("XDG_") or name in ("COLUMNS", "LINES"):  # xdist sets these two
                patch.delenv(name)
        _move_to(folder, patch)
        yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def new_folders(session_folder: Path) -> Callable[[], AbstractContextManager[None]]:
    """Make a TMPDIR and a HOME for what runs in the context."""
    numbers = count(1)

    @contextmanager
    def made() -> Iterator[None]:
        folder = session_folder / str(next(numbers))
        with pytest.MonkeyPatch.context() as patch:
            _move_to(folder, patch)
            yield
        shutil.rmtree(folder, ignore_errors=True)

    return made


@pytest.fixture(autouse=True)
def own_folders(new_folders: Callable[[], AbstractContextManager[None]]) -> Iterator[None]:
    """Give the test a TMPDIR and a HOME of its own."""
    with new_folders():
        yield


def _move_to(folder: Path, patch: pytest.MonkeyPatch) -> None:
    for variable, name in (("TMPDIR", "tmp"), ("HOME", "home")):
        (folder / name).mkdir(parents=True)
        patch.setenv(variable, str(folder / name))
    patch.setattr(tempfile, "tempdir", None)  # where gettempdir keeps what it has found


class Hangs(BaseException):
    """Not an Exception, so that nothing on the way swallows it."""


@pytest.fixture(autouse=True)
def limited(is_long: bool) -> Iterator[None]:
    """A test that hangs fails."""
    limit_s = LIMIT_LONG_S if is_long else LIMIT_S

    def stop(number: int, frame: object) -> None:
        raise Hangs(f"the test has taken more than {limit_s} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, limit_s)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="session")
def is_long(request: pytest.FixtureRequest) -> bool:
    """Whether a test may take minutes: `make test-long`."""
    return bool(request.config.getoption("--long"))


@pytest.fixture(scope="session")
def root() -> Path:
    """The folder of the repository."""
    return ROOT


@pytest.fixture(scope="session")
def traces() -> Path:
    """The folder of the public traces; a test that needs it is skipped where they are absent."""
    folder = Path(os.environ.get("PARSL_SIZER_DATA", ROOT.parent / "shared" / "data")) / "traces"
    if not folder.is_dir():
        pytest.skip(f"there are no traces in {folder}; name their folder in PARSL_SIZER_DATA")
    return folder


@pytest.fixture(scope="session")
def postgres(session_folder: Path) -> Iterator[str]:
    """The address of a PostgreSQL of the tests' own; skipped where it is not installed."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    programs = found[-1].parent if found else Path(shutil.which("initdb") or "none").parent
    if not (programs / "initdb").exists():
        pytest.skip("PostgreSQL is not installed here")
    folder = session_folder / "postgres"
    folder.mkdir()
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
def new_database(postgres: str) -> Callable[[], str]:
    """Makes the address of one more empty database."""
    import psycopg

    numbers = count(_databases())

    def make() -> str:
        name = f"test_{next(numbers)}"
        with psycopg.connect(postgres.format("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}".encode())
        return postgres.format(name)

    return make


@pytest.fixture
def new_role() -> Callable[[str, str], str]:
    """Makes the address of a database for a role that has only these rights on its tables."""
    import psycopg

    def make(url: str, rights: str) -> str:
        database = url.partition("?")[0].rpartition("/")[2]
        name = f"{rights.replace(', ', '_').lower()}_in_{database}"
        with psycopg.connect(url, autocommit=True) as connection:
            for statement in (
                "REVOKE CREATE ON SCHEMA public FROM PUBLIC",  # before version 15 all had it
                f"CREATE ROLE {name} LOGIN",
                f"GRANT {rights} ON ALL TABLES IN SCHEMA public TO {name}",
            ):
                connection.execute(statement.encode())
        return url.replace("test@", f"{name}@", 1)

    return make


def _databases(start: Iterator[int] = count(0, 1000)) -> int:  # noqa: B008 - one for all tests
    return next(start)
