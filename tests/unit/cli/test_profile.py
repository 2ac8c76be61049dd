from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from parsl_sizer.archive.open import open_archive
from parsl_sizer.cli import main
from parsl_sizer.model import NodeProfile
from parsl_sizer.profiling import FEATURES

QUICK = ("profile", "--seconds", "1", "--built-in")
WAYS = {"cpu_single": "sysbench", "memory_bandwidth": "sysbench"}
NODES = tuple(
    NodeProfile(
        host,
        {"cpu_single": speed, "memory_bandwidth": 1e10, "memory": 64e9, "flag_avx2": 1.0},
        WAYS,
        1e9,
        "htex",
    )
    for host, speed in (("old1", 367.0), ("new1", 525.0), ("old2", 370.0), ("new2", 523.0))
)


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """Four nodes of two sorts."""
    path = tmp_path / "archive.sqlite3"
    keep(path, *NODES)
    return path


def keep(path: Path, *profiles: NodeProfile) -> None:
    with closing(open_archive(path)) as opened:
        opened.keep_profiles(profiles)


def test_this_machine_is_profiled_and_remembered(
    tmp_path: Path, printed: Callable[..., Any]
) -> None:
    path = tmp_path / "new" / "archive.sqlite3"
    made = printed(*QUICK, "--extra", "cpu_cache,flag_avx2", "--archive", path)
    assert made["archive"] == str(path)
    [node] = made["nodes"]
    assert {*FEATURES, "cores", "memory"} <= set(node["features"])
    assert node["executor"] is None
    assert node["group"] == "1"
    listed = printed("profile", "--list", "--archive", path)
    assert listed["nodes"] == made["nodes"]


def test_people_see_how_each_feature_was_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "archive.sqlite3"
    assert main([*QUICK, "--archive", str(path)]) == 0
    shown = capsys.readouterr().out
    for feature in FEATURES:
        assert f"\n{feature} " in shown
    assert "built-in: primes up to" in shown
    assert f"Kept 1 profile in {path}." in shown


def test_a_dry_run_keeps_nothing(tmp_path: Path, printed: Callable[..., Any]) -> None:
    path = tmp_path / "archive.sqlite3"
    assert printed(*QUICK, "--dry-run", "--archive", path)["archive"] is None
    assert not path.exists()


def test_without_an_archive_it_is_told_all_the_same(
    monkeypatch: pytest.MonkeyPatch, printed: Callable[..., Any]
) -> None:
    monkeypatch.setenv("PARSL_SIZER_ARCHIVE", "off")
    made = printed(*QUICK)
    assert made["archive"] is None
    assert len(made["nodes"]) == 1


def test_an_archive_that_cannot_be_used_is_a_remark(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("no archive")
    assert main([*QUICK, "--archive", str(path)]) == 0
    out, error = capsys.readouterr()
    assert "cpu_single" in out
    assert "What was measured is not kept." in error
    assert path.read_text() == "no archive"


def test_nodes_are_listed_by_group_with_labels(
    archive: Path, printed: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    found = printed("profile", "--list", "--archive", archive)
    by_node = {node["node"]: node for node in found["nodes"]}
    assert {name: node["group"] for name, node in by_node.items()} == {
        **dict.fromkeys(("htex/old1", "htex/old2"), "1"),
        **dict.fromkeys(("htex/new1", "htex/new2"), "2"),
    }
    assert by_node["htex/old1"]["labels"] == {"cpu": 1, "memory": 1}
    assert by_node["htex/new1"]["labels"] == {"cpu": 2, "memory": 1}
    assert found["grouped_by"] == ["cpu_single", "memory_bandwidth"]
    assert main(["profile", "--list", "--archive", str(archive)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines[1:]] == [
        ["1", "htex/old1"],
        ["1", "htex/old2"],
        ["2", "htex/new1"],
        ["2", "htex/new2"],
    ]


def test_what_was_measured_in_two_ways_is_not_compared(
    archive: Path, printed: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    other = replace(NODES[0], measured_at=2e9, methods={**WAYS, "cpu_single": "built-in"})
    keep(archive, other)
    assert printed("profile", "--list", "--archive", archive)["grouped_by"] == ["memory_bandwidth"]
    assert main(["profile", "--list", "--archive", str(archive)]) == 0
    assert "not compared by cpu_single: it was measured in two ways" in capsys.readouterr().err


def test_the_features_to_compare_by_can_be_chosen(
    archive: Path, printed: Callable[..., Any], refused: Callable[..., str]
) -> None:
    found = printed("profile", "--list", "--archive", archive, "--by", "flag_avx2,memory")
    assert found["grouped_by"] == ["flag_avx2", "memory"]
    assert {node["group"] for node in found["nodes"]} == {"1"}
    sentence = refused("profile", "--list", "--archive", archive, "--by", "gpus")
    assert "Nodes cannot be compared by gpus: it is not known of htex/new1." in sentence


def test_nodes_that_are_gone_are_forgotten(
    archive: Path, printed: Callable[..., Any], refused: Callable[..., str]
) -> None:
    forgotten = printed("profile", "--forget", "htex/old1", "htex/new1", "--archive", archive)
    assert forgotten["forgotten"] == 2
    left = printed("profile", "--list", "--archive", archive)["nodes"]
    assert [node["node"] for node in left] == ["htex/new2", "htex/old2"]
    sentence = refused("profile", "--forget", "htex/old1", "--archive", archive)
    assert "There is no profile of 'htex/old1'" in sentence


def test_an_empty_list_says_what_to_do(archive: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["profile", "--forget", *(node.name for node in NODES), "--archive", str(archive)])
    capsys.readouterr()
    assert main(["profile", "--list", "--archive", str(archive)]) == 0
    assert "parsl-sizer profile makes one" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (None, "cannot be read: No such file or directory."),
        ("config = 1 / 0", "cannot be run: ZeroDivisionError"),
        ("pass", "has no config; it should say config = Config(...)"),
    ],
)
def test_a_config_that_is_none_is_told_in_one_sentence(
    tmp_path: Path, refused: Callable[..., str], text: str | None, sentence: str
) -> None:
    path = tmp_path / "cluster.py"
    if text is not None:
        path.write_text(text)
    assert sentence in refused("profile", "--config", path, "--dry-run")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--seconds", "0.5"], "seconds=0.5 is too short a time; take 1 or more."),
        (["--extra", "colour"], "'colour' is no feature; there is cpu_mhz"),
        (["--extra", ","], "names nothing"),
        (["--list", "--config", "x.py"], "not allowed with argument"),
    ],
)
def test_what_makes_no_sense_is_refused(
    refused: Callable[..., str], arguments: list[str], sentence: str
) -> None:
    assert sentence in refused("profile", *arguments)
