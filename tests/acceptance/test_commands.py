"""The commands as a stranger's script calls them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from parsl_sizer.cli import main

HEADER = "category,input_size,cores,memory_mb,disk_mb,time_s,user_memory_mb"


def run(*arguments: object, given: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "parsl_sizer", *map(str, arguments)]
    return subprocess.run(command, input=given, capture_output=True, check=False)


def test_a_trace_is_generated_replayed_and_compared(tmp_path: Path) -> None:
    trace = tmp_path / "trace.csv"
    assert run("generate", "bimodal", "--tasks", 300, "--seed", 1, "-o", trace).returncode == 0
    replayed = run(
        *("replay", trace, "--strategy", "auto", "--lag", 0, "--ttf", 1.0),
        *("--objective", "waste", "--node", "cores=16,memory=64GB,disk=64GB", "--json"),
    )
    assert replayed.returncode == 0, replayed.stderr
    found = json.loads(replayed.stdout)
    for name in ("trace", "strategy", "lag", "ttf", "objective", "tasks", "attempts", "retries"):
        assert name in found
    for name in ("exhausted", "seconds"):
        assert name in found
    for kind in ("memory", "cores", "disk"):
        for name in ("used", "allocated", "waste", "maq", "wrr", "ate", "retries"):
            assert isinstance(found[kind][name], (int, float))
    assert 0.5 < found["memory"]["maq"] <= 1


def test_every_strategy_is_compared_and_none_is_left_out(tmp_path: Path) -> None:
    trace, picture = tmp_path / "trace.csv", tmp_path / "out.png"
    assert run("generate", "linear", "--tasks", 60, "-o", trace).returncode == 0
    compared = run("compare", trace, "--png", picture, "--json")
    assert compared.returncode == 0, compared.stderr
    assert compared.stderr == b""
    found = json.loads(compared.stdout)
    assert found["left_out"] == {}
    assert len(found["strategies"]) >= 20
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_whoever_stops_reading_gets_no_traceback() -> None:
    command = [sys.executable, "-m", "parsl_sizer", "generate", "normal", "--tasks", "200000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().decode().strip() == HEADER
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


def test_a_terminal_that_knows_only_ascii_is_no_reason_to_fail(tmp_path: Path) -> None:
    trace = tmp_path / "流れ.csv"
    trace.write_text(f"{HEADER}\n流れ,,1,100,1,5,\n", encoding="utf-8")
    command = [sys.executable, "-m", "parsl_sizer", "replay", str(trace), "--per-category"]
    ended = subprocess.run(
        [*command, "--strategy", "doubling"],
        capture_output=True,
        check=False,
        env={"PYTHONIOENCODING": "ascii", "PATH": "/usr/bin:/bin"},
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.isascii()


def test_standard_input_is_a_trace(tmp_path: Path) -> None:
    given = f"{HEADER}\na,,1,100,1,5,\n".encode()
    ended = run("replay", "-", "--strategy", "oracle", "--json", given=given)
    assert json.loads(ended.stdout)["tasks"] == 1
    ended = run("replay", "-", "--strategy", "oracle", "--json", given=b"\xff\xfe\x00")
    assert (ended.returncode, ended.stdout) == (2, b"")
    assert ended.stderr.count(b"\n") == 1


def test_order_does_not_matter_to_what_learns_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [f"c{number % 3},,1,{(number * 7919) % 60000},1,5," for number in range(200)]

    def waste(order: list[str]) -> Any:
        path = tmp_path / "trace.csv"
        path.write_text("\n".join([HEADER, *order]))
        assert main(["replay", str(path), "--strategy", "doubling", "--json"]) == 0
        return json.loads(capsys.readouterr().out)["memory"]["waste"]

    assert waste(lines) == waste(sorted(lines)) == waste(lines[::-1])


def test_a_hundred_thousand_categories_are_replayed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "trace.csv"
    with path.open("w") as file:
        file.write("category,memory_mb,time_s\n")
        file.writelines(f"category {number},{number % 60000},1\n" for number in range(100_000))
    assert main(["replay", str(path), "--strategy", "doubling", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["tasks"], found["memory"]["tasks"]) == (100_000, 100_000)


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys; from parsl_sizer.cli import main; main(['--help']); "
        "print([m for m in ('numpy', 'parsl', 'rich', 'matplotlib') if m in sys.modules])"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert ended.stdout.decode().splitlines()[-1] == "[]"
