"""``parsl-sizer replay``."""

from __future__ import annotations

import io
import os
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from parsl_sizer.cli import main

Printed = Callable[..., Any]

HEADER = "category,input_size,cores,memory_mb,disk_mb,time_s,user_memory_mb\n"


def written(folder: Path, text: str, header: str = HEADER) -> Path:
    path = folder / "given.csv"
    path.write_text(header + text)
    return path


def test_json_has_what_was_asked_and_the_figures(printed: Printed, trace: Path) -> None:
    found = printed(
        *("replay", trace, "--strategy", "doubling", "--lag", 5, "--ttf", 0.5),
        *("--objective", "throughput", "--node", "cores=8,memory=48GB", "--seed", 3),
    )
    asked = {
        "trace": str(trace),
        "strategy": "doubling",
        "lag": 5,
        "ttf": 0.5,
        "objective": "throughput",
        "together": False,
        "seed": 3,
        "node": {"cores": 8.0, "memory_mb": 48_000.0, "disk_mb": 64_000.0, "gpus": 0.0},
    }
    assert {name: found[name] for name in asked} == asked
    assert found["tasks"] == 120
    assert found["seconds"] > 0
    assert found["retries"] == found["memory"]["retries"]
    assert found["attempts"] == found["tasks"] + found["retries"]
    for kind in ("memory", "cores", "disk"):
        assert set(found[kind]) == {
            *("tasks", "used", "allocated", "waste", "fragmentation", "failed", "maq", "wrr"),
            *("ate", "throughput", "retries", "exhausted", "impossible"),
        }


def test_defaults_are_those_of_the_papers(printed: Printed, trace: Path) -> None:
    found = printed("replay", trace, "--strategy", "whole-machine")
    assert (found["lag"], found["ttf"], found["objective"]) == (0, 1.0, "waste")
    assert found["node"] == {"cores": 16, "memory_mb": 64e3, "disk_mb": 64e3, "gpus": 0}
    assert found["memory"]["wrr"] == 0.0


def test_kinds_by_themselves_are_what_each_alone_would_be(printed: Printed, tmp_path: Path) -> None:
    lines = ["a,3,9000,10", "a,1,1000,10", "a,5,20000,10", "a,2,2000,10"]
    both = written(tmp_path, "\n".join(lines), "category,cores,memory_mb,time_s\n")
    found = printed("replay", both, "--strategy", "doubling")
    alone = "\n".join(",".join(line.split(",")[0:1] + line.split(",")[2:]) for line in lines)
    memory = written(tmp_path, alone, "category,memory_mb,time_s\n")
    assert printed("replay", memory, "--strategy", "doubling")["memory"] == found["memory"]
    assert found["cores"]["retries"] > 0


def test_together_every_failure_counts(printed: Printed, tmp_path: Path) -> None:
    path = written(tmp_path, "a,4,1000,10\n", "category,cores,memory_mb,time_s\n")
    alone = printed("replay", path, "--strategy", "doubling")
    together = printed("replay", path, "--strategy", "doubling", "--together")
    assert (alone["retries"], alone["memory"]["failed"]) == (0, 0.0)
    assert (together["retries"], together["attempts"]) == (1, 2)
    assert together["memory"]["failed"] == 8000.0 * 10


def test_a_larger_lag_learns_later(printed: Printed, trace: Path) -> None:
    wastes = [
        printed("replay", trace, "--strategy", "percentile", "--lag", lag)["memory"]["waste"]
        for lag in (0, 60)
    ]
    assert wastes[0] < wastes[1]


def test_an_earlier_failure_wastes_less(printed: Printed, trace: Path) -> None:
    late, early = (
        printed("replay", trace, "--strategy", "doubling", "--ttf", ttf)["memory"]
        for ttf in (1.0, 0.25)
    )
    assert early["failed"] == pytest.approx(late["failed"] / 4)
    assert early["fragmentation"] == late["fragmentation"]


@pytest.mark.parametrize("strategy", ["oracle", "user-declared"])
def test_what_needs_hindsight_has_it(printed: Printed, trace: Path, strategy: str) -> None:
    found = printed("replay", trace, "--strategy", strategy)["memory"]
    assert found["retries"] == 0
    assert (found["waste"] == 0) is (strategy == "oracle")


def test_one_row_is_a_trace(printed: Printed, tmp_path: Path) -> None:
    found = printed("replay", written(tmp_path, "a,,1,100,1,5,"), "--strategy", "doubling")
    assert (found["tasks"], found["attempts"], found["memory"]["used"]) == (1, 1, 500.0)


def test_zero_and_unknown_time_count_but_do_not_weigh(printed: Printed, tmp_path: Path) -> None:
    path = written(tmp_path, "a,,1,20000,1,0,\na,,1,20000,1,,\n")
    found = printed("replay", path, "--strategy", "doubling")
    assert found["retries"] == 4
    assert found["memory"]["waste"] == 0.0
    assert (found["memory"]["maq"], found["memory"]["wrr"]) == (None, None)


def test_what_exceeds_the_node_is_impossible_and_told(
    tmp_path: Path, printed: Printed, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, f"a,,1,{10**18},1,5,\na,,1,100,1,5,\n" + "b,,32,1,1,5,\n" * 7)
    arguments = ["replay", str(path), "--strategy", "doubling"]
    found = printed(*arguments)
    assert (found["tasks"], found["impossible"]) == (9, 8)
    assert (found["memory"]["impossible"], found["memory"]["tasks"]) == (1, 8)
    assert (found["cores"]["impossible"], found["cores"]["tasks"]) == (7, 2)
    assert (found["exhausted"], found["attempts"]) == (1, 8)
    assert main(arguments) == 0
    assert capsys.readouterr().err == (
        "parsl-sizer: Impossible and left out: 7 rows need more cores than the 16 cores of the "
        "node (lines 4, 5, 6, 7, 8, …); 1 row needs more memory than the 64 GB of the node "
        "(line 2).\n"
    )
    together = printed(*arguments, "--together")
    assert (together["impossible"], together["exhausted"], together["attempts"]) == (8, 8, 1)


def test_a_trace_of_which_all_is_impossible_is_replayed(printed: Printed, tmp_path: Path) -> None:
    found = printed("replay", written(tmp_path, "a,,,90000,,5,\n"), "--strategy", "doubling")
    assert (found["tasks"], found["exhausted"], found["attempts"]) == (1, 1, 0)
    assert found["memory"]["waste"] is None


def test_an_unknown_kind_is_null(printed: Printed, tmp_path: Path) -> None:
    found = printed("replay", written(tmp_path, "a,,,100,,5,\n"), "--strategy", "doubling")
    assert found["disk"]["tasks"] == found["cores"]["retries"] == 0
    assert found["disk"]["waste"] is found["cores"]["maq"] is None


def test_categories_are_told_if_asked(
    printed: Printed, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    long, other = "x" * 10_000, "流れ 🌊"
    path = written(tmp_path, f"{long},,1,100,1,5,\n{other},,1,300,1,5,\n")
    arguments = ["replay", str(path), "--strategy", "doubling"]
    assert "categories" not in printed(*arguments)
    found = printed(*arguments, "--per-category")["categories"]
    assert {name: kinds["memory"]["used"] for name, kinds in found.items()} == {
        long: 500.0,
        other: 1500.0,
    }
    assert main([*arguments, "--per-category"]) == 0
    table = capsys.readouterr().out
    assert other in table
    assert max(map(len, table.splitlines())) <= 120


def test_a_cluster_is_told_if_asked(
    printed: Printed, trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = printed("replay", trace, "--strategy", "oracle", "--nodes", 1)["cluster"]
    four = printed("replay", trace, "--strategy", "oracle", "--nodes", 4)["cluster"]
    assert (one["done"], one["attempts"], one["nodes"], four["nodes"]) == (120, 120, 1, 4)
    assert one["makespan_s"] > 2 * four["makespan_s"]
    assert four["tasks_per_hour"] == pytest.approx(120 * 3600 / four["makespan_s"])
    assert 0.5 < four["utilisation"]["memory"] <= four["occupancy"]["memory"] <= 1
    assert set(four["utilisation"]) == {"memory", "cores", "disk"}
    assert main(["replay", str(trace), "--strategy", "oracle", "--nodes", "4"]) == 0
    assert "on 4 nodes: 120 tasks done with 120 attempts" in capsys.readouterr().out


def test_people_get_a_table(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(trace), "--strategy", "doubling"]) == 0
    out, error = capsys.readouterr()
    assert out.splitlines()[0] == f"{trace}: 120 tasks sized by doubling"
    assert "node of 16 cores, 64 GB memory, 64 GB disk" in out
    assert "MAQ: used / allocated" in out
    assert error == ""


def test_a_dash_is_standard_input(
    printed: Printed, trace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    piped = SimpleNamespace(buffer=io.BytesIO(trace.read_bytes()))
    monkeypatch.setattr("sys.stdin", piped)
    found = printed("replay", "-", "--strategy", "oracle")
    assert (found["trace"], found["tasks"], found["memory"]["waste"]) == ("-", 120, 0.0)


def test_a_pipe_is_read_even_if_the_trace_is_needed_twice(
    printed: Printed, trace: Path, tmp_path: Path
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(trace.read_bytes()))
    writer.start()
    found = printed("replay", pipe, "--strategy", "user-declared")
    writer.join()
    assert (found["trace"], found["tasks"]) == (str(pipe), 120)


@pytest.mark.parametrize("strategy", ["raising", "nonsense"])
@pytest.mark.usefixtures("plugins")
def test_a_broken_strategy_is_told_and_the_tasks_run(
    printed: Printed, trace: Path, strategy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found = printed("replay", trace, "--strategy", strategy)
    assert (found["tasks"], found["retries"], found["memory"]["wrr"]) == (120, 0, 0.0)
    assert main(["replay", str(trace), "--strategy", strategy]) == 0
    told = capsys.readouterr().err.splitlines()
    assert 1 <= len(told) <= 4
    assert all(line.startswith(f"parsl-sizer: {strategy}: ") for line in told)


@pytest.mark.parametrize(
    ("strategy", "sentence"),
    [
        ("doubbling", "No strategy is called 'doubbling'; did you mean 'doubling'?"),
        ("percentile:q=3", "it takes p"),
        ("percentile:p", "not of the form OPTION=VALUE"),
        ("percentile:p=300", "p must be a number from 0 to 100"),
        ("", "No strategy is called ''"),
    ],
)
def test_a_strategy_that_is_not_there_is_told(
    refused: Callable[..., str], trace: Path, strategy: str, sentence: str
) -> None:
    assert sentence in refused("replay", trace, "--strategy", strategy, "--json")


@pytest.mark.usefixtures("plugins")
@pytest.mark.parametrize("strategy", ["absent", "unmakeable"])
def test_a_strategy_that_cannot_be_made_is_told(
    refused: Callable[..., str], trace: Path, strategy: str
) -> None:
    error = refused("replay", trace, "--strategy", strategy)
    assert f"Strategy '{strategy}' cannot be made: " in error


@pytest.mark.parametrize(
    ("option", "value", "sentence"),
    [
        ("--lag", "-1", "'-1' is not a whole number, 0 or more"),
        ("--lag", "1.5", "'1.5' is not a whole number"),
        ("--ttf", "1.1", "'1.1' is not a number from 0 to 1"),
        ("--ttf", "nan", "'nan' is not a number from 0 to 1"),
        ("--ttf", "soon", "'soon' is not a number from 0 to 1"),
        ("--objective", "money", "invalid choice: 'money'"),
        ("--node", "memory=many", "is not an amount"),
        ("--node", "ram=64GB", "with KIND one of cores, memory, disk"),
        ("--node", "memory=64", "a unit may be missing, as in 64GB"),
        ("--node", "cores=0", "leaves no cores to run in"),
        ("--node", "memory=1e999GB", "not a finite amount"),
        ("--nodes", "0", "'0' is not a whole number, 1 or more"),
        ("--seed", "x", "invalid int value: 'x'"),
    ],
)
def test_an_argument_that_makes_no_sense_is_told(
    refused: Callable[..., str], trace: Path, option: str, value: str, sentence: str
) -> None:
    error = refused("replay", trace, f"{option}={value}", "--strategy", "doubling")
    assert sentence in error


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", " is empty"),
        (HEADER, "has a header but no tasks"),
        (HEADER + "a,,1,nan,1,5,\n", "line 2, column memory_mb: found 'nan'"),
        (HEADER + "a,,1,1,1,-5,\n", "line 2, column time_s: found '-5'"),
        (HEADER + "a,,1,1,1,5,\na,,1,1\n", "line 3, column disk_mb: found the end of the line"),
        ("a,b\n1,2\n", "line 1: 'a,b' has no column category"),
    ],
)
def test_a_malformed_trace_is_told_and_nothing_is_printed(
    refused: Callable[..., str], tmp_path: Path, text: str, sentence: str
) -> None:
    error = refused(
        "replay", written(tmp_path, text, header=""), "--strategy", "doubling", "--json"
    )
    assert sentence in error
    assert "given.csv" in error


def test_what_is_no_file_is_told(refused: Callable[..., str], tmp_path: Path) -> None:
    assert "no such file" in refused("replay", tmp_path / "absent.csv", "--strategy", "doubling")
    assert "is a directory" in refused("replay", tmp_path, "--strategy", "doubling")
