"""What a run cost, on terminals of any width."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from parsl_sizer.model import Attempt, Ending, Kind, Outcome, TaskInfo, Usage
from parsl_sizer.report.run import RunCost, run_table

NODE = {Kind.MEMORY: 64e9}


def cost(*categories: str, overran: bool = False, ending: Ending = Ending.DONE) -> RunCost:
    found = RunCost()
    for category in categories:
        attempt = Attempt(TaskInfo(1, category), 1, {Kind.MEMORY: 61.23e9})
        usage = Usage({Kind.MEMORY: 30.6e9}, 33.6)
        done = Outcome(attempt, Ending.DONE, usage=usage, overran=overran)
        for _ in range(1000):
            found.add([done], NODE)
        found.add([Outcome(attempt, ending, usage=usage)], NODE)
    return found


def shown(found: RunCost, width: int) -> list[str]:
    file = io.StringIO()
    Console(file=file, width=width).print(run_table(found))
    lines = [line.rstrip() for line in file.getvalue().splitlines()]
    assert max(map(len, lines)) <= width
    return lines


@pytest.mark.parametrize("width", [80, 90, 100, 110, 120])
@pytest.mark.parametrize("category", ["align_genome", "align_genome_of_every_sample_and_lane"])
def test_what_was_saved_is_never_cut(category: str, width: int) -> None:
    wholly = shown(cost("merge_sample", category, overran=True, ending=Ending.RAISED), width)
    text = " ".join(" ".join(wholly).split())
    assert text.count("25.9 GB·h") == text.count("(4 %)") == 2
    assert text.count("61.2 GB") == text.count("30.6 GB") == text.count("1,001") == 2
    assert any(line.startswith("merge_sample ") for line in wholly)
    assert any(line.startswith("align_genome") for line in wholly)


def test_a_narrow_terminal_is_not_told_that_nothing_failed() -> None:
    assert "failed" in shown(cost("align"), 120)[0]
    narrow = shown(cost("align_genome"), 80)
    assert not any("failed" in line or "overruns" in line for line in narrow)
    row = next(line for line in narrow if line.startswith("align_genome "))
    assert row.endswith("25.9 GB·h (4 %)")
    [header] = [line for line in shown(cost("align", ending=Ending.LOST), 80) if "retries" in line]
    assert "failed" in header
    assert "overruns" not in header


def test_a_task_that_others_do_the_work_of_has_not_failed() -> None:
    attempt = Attempt(TaskInfo(1, "align"), 1, {Kind.MEMORY: 64e9})
    usage = Usage({Kind.MEMORY: 64e9}, 10.0)
    ran_out = Outcome(attempt, Ending.EXHAUSTED, usage=usage, exhausted=frozenset({Kind.MEMORY}))
    found = RunCost()
    found.add([ran_out, ran_out], NODE)
    assert (found.categories["align"].failed, found.categories["align"].retries) == (1, 0)
    found.add([ran_out], NODE, is_split=True)
    align = found.categories["align"]
    assert (align.tasks, align.failed, align.retries) == (2, 1, 1)


@pytest.mark.parametrize(
    ("cores", "used", "remark"),
    [
        (8, 2e9, "60 %"),  # 30 of 50 GB: half of the node goes with half of its cores
        (16, 2e9, "100 %"),
        (2, 2e9, None),  # others would have had cores for it
        (8, 40e9, None),  # most of it was used
    ],
)
def test_memory_that_would_have_lain_idle_is_not_held_against_the_sizer(
    cores: int, used: float, remark: str | None
) -> None:
    given = {Kind.CORES: float(cores), Kind.MEMORY: 52e9}
    attempt = Attempt(TaskInfo(1, "align"), 1, given)
    found = RunCost()
    for _ in range(3):
        usage = Usage({Kind.MEMORY: used}, 10.0)
        found.add([Outcome(attempt, Ending.DONE, usage=usage)], NODE | {Kind.CORES: 16.0})
    remarks = [line for line in shown(found, 160) if "lain idle" in line]
    if remark is None:
        assert not remarks
    else:
        [line] = remarks
        assert line.startswith(f"Of the memory that was given and not used, {remark} would")
