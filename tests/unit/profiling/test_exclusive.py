"""One call at a time measures a node, and once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import pytest

from parsl_sizer.profiling import exclusive

CALL = """\
import json, os, pathlib, sys
from parsl_sizer.profiling import exclusive
def measure(seconds):
    print("measuring", flush=True)
    input()
    return {"features": {"cpu_single": 1.0}, "methods": {}}
exclusive.measure = measure
exclusive.COMMON = pathlib.Path(os.environ["COMMON"])
print(json.dumps(exclusive.visit(sys.argv[1], 30.0)))
"""


@pytest.fixture
def token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("COMMON", str(tmp_path))
    return uuid.uuid4().hex


def call(token: str) -> subprocess.Popen[str]:
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    return subprocess.Popen([sys.executable, "-c", CALL, token], **pipes)


def finished(process: subprocess.Popen[str]) -> dict[str, Any]:
    out, _ = process.communicate("\n", timeout=60)
    found: dict[str, Any] = json.loads(out.splitlines()[-1])
    return found


def test_of_several_calls_one_measures_and_the_others_wait_for_it(token: str) -> None:
    first = call(token)
    assert first.stdout is not None
    assert first.stdout.readline() == "measuring\n"
    others = [call(token) for _ in range(3)]
    assert all(other.poll() is None for other in others)
    assert "features" in finished(first)
    assert all("features" not in finished(other) for other in others)


def test_if_the_one_that_measures_dies_another_measures(token: str) -> None:
    first = call(token)
    assert first.stdout is not None
    assert first.stdout.readline() == "measuring\n"
    second = call(token)
    os.kill(first.pid, signal.SIGKILL)
    first.communicate()
    assert "features" in finished(second)


def test_another_token_is_measured_anew(token: str) -> None:
    assert "features" in finished(call(token))
    assert "features" not in finished(call(token))
    assert "features" in finished(call("another"))


def test_a_link_in_place_of_the_file_is_not_followed(
    token: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "features" in finished(call(token))
    [file] = tmp_path.iterdir()
    file.unlink()
    (tmp_path / "precious").write_text("kept")
    file.symlink_to(tmp_path / "precious")
    assert "features" in finished(call(token))
    assert (tmp_path / "precious").read_text() == "kept"


def test_managers_and_workers_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PARSL_WORKER_POOL_ID", raising=False)
    elsewhere = exclusive.place()
    monkeypatch.setenv("PARSL_WORKER_POOL_ID", "a1b2")
    assert exclusive.place() == "a1b2"
    assert elsewhere != "a1b2"
