"""The script that installs system packages asks for what is missing and for nothing else."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / ".ci" / "packages"


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A folder of commands, all that the script will find; apt-get notes how it is called."""
    for name in ("bash", "test", "make"):
        found = shutil.which(name)
        assert found, f"this test needs {name}"
        (tmp_path / name).symlink_to(found)
    command(tmp_path, "apt-get", f'echo "$*" >> {tmp_path}/asked')
    command(tmp_path, "id", "echo 0")
    command(tmp_path, "python3", "exit 0")
    return tmp_path


def command(folder: Path, name: str, body: str) -> None:
    path = folder / name
    path.unlink(missing_ok=True)
    path.write_text(f"#!{shutil.which('bash')}\n{body}\n")
    path.chmod(0o755)


def run(machine: Path) -> tuple[subprocess.CompletedProcess[str], str]:
    ran = subprocess.run(
        [str(machine / "bash"), str(SCRIPT)],
        env={"PATH": str(machine)},
        capture_output=True,
        text=True,
        check=False,
    )
    asked = machine / "asked"
    return ran, asked.read_text() if asked.exists() else ""


needs_certificates = pytest.mark.skipif(
    not Path("/etc/ssl/certs/ca-certificates.crt").exists(),
    reason="the script rightly asks for certificates here",
)


@needs_certificates
def test_nothing_is_done_where_everything_is_there(machine: Path) -> None:
    ran, asked = run(machine)
    assert (ran.returncode, ran.stdout, ran.stderr, asked) == (0, "", "", "")


@needs_certificates
def test_what_is_missing_is_installed(machine: Path) -> None:
    command(machine, "python3", "exit 1")
    (machine / "make").unlink()
    ran, asked = run(machine)
    assert ran.returncode == 0, ran.stderr
    assert asked.splitlines() == [
        "update -q",
        "install -q -y --no-install-recommends make python3-venv",
    ]


@needs_certificates
def test_who_may_not_install_is_told_what_is_missing(machine: Path) -> None:
    command(machine, "id", "echo 1000")
    (machine / "python3").unlink()
    ran, asked = run(machine)
    assert (ran.returncode, asked) == (1, "")
    assert "As root, run: apt-get install python3 python3-venv" in ran.stderr


def test_the_scripts_can_be_run() -> None:
    for name in ("packages", "run"):
        assert os.access(SCRIPT.with_name(name), os.X_OK)
