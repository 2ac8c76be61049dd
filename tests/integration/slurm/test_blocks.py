"""Blocks on a real Slurm, without workers in them: their shapes, waits and ends."""

from __future__ import annotations

import itertools
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from parsl.jobs.states import JobState
from sizer_runs import htex, nothing_left, wait_until
from sizer_slurm import Slurm, provider

from parsl_sizer.engines.blocks import Blocks, Over, Started
from parsl_sizer.scaling import Geometry

ONE = Geometry(1, 1, 1e9)
TWO = Geometry(2, 1, 1e9)


class Seen:
    """Blocks, and all that was told of them."""

    def __init__(self, inner: Any, again_s: float = 0.0) -> None:
        self.blocks = Blocks(inner, mark="parsl_sizer-test", look_s=0.2, again_s=again_s)
        self.started: dict[str, Started] = {}
        self.over: list[str] = []

    def look(self) -> None:
        for news in self.blocks.look():
            if isinstance(news, Started):
                assert news.block not in self.started
                self.started[news.block] = news
            else:
                assert isinstance(news, Over)
                self.over.append(news.block)

    def wait_for_start(self, name: str) -> Started:
        return wait_until(lambda: self.look() or self.started.get(name), f"a start of {name}")

    def wait_for_end(self, name: str) -> None:
        wait_until(lambda: self.look() or name in self.over, f"an end of {name}")

    def states(self) -> list[JobState]:
        return [status.state for status in self.blocks.status().values()]


@pytest.fixture
def inner(slurm: Slurm, tmp_path: Path) -> Iterator[Any]:
    """An executor whose blocks do nothing, for a long time."""
    asked = provider(nodes_per_block=4, max_blocks=3)
    asked.script_dir = str(tmp_path)
    made = htex(1, provider=asked, launch_cmd="sleep 600")
    made.run_dir = str(tmp_path)
    with nothing_left():
        made.start()
        try:
            yield made
        finally:
            made.shutdown()


@pytest.fixture
def seen(inner: Any) -> Iterator[Seen]:
    made = Seen(inner)
    made.blocks.start()
    yield made
    made.blocks.close()


def test_each_block_is_asked_for_in_its_own_shape(slurm: Slurm, seen: Seen) -> None:
    assert seen.blocks.request("small", ONE, walltime_s=300)
    assert seen.blocks.request("large", TWO, walltime_s=3661)
    jobs = {job.nodes: job for job in slurm.blocks()}
    assert set(jobs) == {1, 2}
    assert "TimeLimit=00:05:00" in slurm.call("scontrol", "show", "job", "-o", jobs[1].number)
    assert "TimeLimit=01:01:00" in slurm.call("scontrol", "show", "job", "-o", jobs[2].number)
    asked = seen.blocks._provider
    assert (asked.nodes_per_block, asked.walltime) == (4, "00:10:00")
    assert {job.comment for job in slurm.blocks()} == {"parsl_sizer-test"}


def test_the_wait_is_what_slurm_says(slurm: Slurm, seen: Seen) -> None:
    others = [slurm.fill(600) for _ in slurm.nodes]
    wait_until(lambda: all(job.state == "RUNNING" for job in slurm.jobs()), "a full machine")
    assert seen.blocks.request("late", ONE)
    [job] = slurm.blocks()
    seen.look()
    assert not seen.started
    assert job.state == "PENDING"
    slurm.call("scancel", others[0])
    started = seen.wait_for_start("late")
    times = slurm.call("squeue", "-h", "-j", job.number, "-O", "SubmitTime:40,StartTime:40").split()
    assert started.geometry == ONE
    assert started.wait_s == _seconds_between(*times)
    assert seen.states() == [JobState.RUNNING]


def test_there_are_never_more_than_allowed(slurm: Slurm, seen: Seen) -> None:
    slurm.fill(600, nodes=4)
    asked = [seen.blocks.request(f"block-{number}", ONE) for number in range(5)]
    assert asked == [True] * 3 + [False] * 2
    assert len(slurm.blocks()) == len(seen.blocks) == 3
    seen.blocks.release("block-0")
    seen.wait_for_end("block-0")
    assert seen.blocks.request("block-5", ONE)
    assert len(slurm.blocks()) == 3


def test_a_block_starts_after_the_end_of_the_one_that_it_follows(slurm: Slurm, seen: Seen) -> None:
    assert seen.blocks.request("first", TWO)
    seen.wait_for_start("first")
    assert seen.blocks.request("second", ONE, after=["first"])
    seen.look()
    wait_until(
        lambda: "Dependency" in slurm.call("squeue", "-h", "-t", "PD", "-o", "%r"),
        "a block that waits for another, with nodes free",
    )
    seen.blocks.release("first")
    seen.wait_for_start("second")
    assert seen.over == ["first"]
    assert sorted(seen.states()) == sorted([JobState.SCALED_IN, JobState.RUNNING])


def test_a_block_that_is_given_back_is_no_failure(slurm: Slurm, inner: Any, seen: Seen) -> None:
    """HTEX takes a block for missing that has ended and that no worker came from."""
    slurm.fill(600, nodes=4)
    assert seen.blocks.request("unwanted", ONE)
    seen.blocks.release("unwanted")
    seen.wait_for_end("unwanted")
    inner.poll_facade()
    assert [status.state for status in inner.status_facade.values()] == [JobState.MISSING]
    assert seen.states() == [JobState.SCALED_IN]
    assert not slurm.blocks()


def test_a_waiting_block_that_somebody_cancels_is_over_and_no_failure(
    slurm: Slurm, seen: Seen
) -> None:
    slurm.fill(600, nodes=4)
    assert seen.blocks.request("unlucky", ONE)
    slurm.call("scancel", *[job.number for job in slurm.blocks()])
    seen.wait_for_end("unlucky")
    assert not seen.started
    assert seen.states() == [JobState.CANCELLED]


def test_what_slurm_refuses_is_over_at_once(slurm: Slurm, inner: Any, seen: Seen) -> None:
    inner.provider.scheduler_options += "#SBATCH --partition=none-such\n"
    assert seen.blocks.request("refused", ONE)
    seen.look()
    assert seen.over == ["refused"]
    assert seen.states() == [JobState.FAILED]


def test_what_slurm_refuses_is_not_asked_for_again_and_again(slurm: Slurm, inner: Any) -> None:
    inner.provider.scheduler_options += "#SBATCH --partition=none-such\n"
    seen = Seen(inner, again_s=1000.0)
    assert seen.blocks.request("refused", ONE)
    now = seen.blocks._now()
    seen.blocks._now = lambda: now + 999
    seen.look()
    assert not seen.over
    seen.blocks._now = lambda: now + 1001
    seen.look()
    assert seen.over == ["refused"]
    seen.blocks.close()


def test_while_slurm_is_away_blocks_live_on_and_new_ones_are_asked_for_later(
    slurm: Slurm, seen: Seen
) -> None:
    assert seen.blocks.request("early", ONE)
    seen.wait_for_start("early")
    slurm.stop_controller()
    try:
        assert seen.blocks.request("later", ONE)
        seen.blocks._looked_at = 0.0
        seen.look()
        assert not seen.over
        assert seen.states() == [JobState.RUNNING]
    finally:
        slurm.start_controller()
    seen.wait_for_start("later")
    assert not seen.over
    assert len(slurm.blocks()) == 2


def test_a_job_that_the_accounts_do_not_show_yet_is_not_over(
    slurm: Slurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`sacct` answers, and says nothing of a new job: Parsl's provider calls that completed."""
    sacct = tmp_path / "bin" / "sacct"
    sacct.parent.mkdir()
    sacct.write_text("#!/bin/sh\nexit 0\n")
    sacct.chmod(0o755)
    monkeypatch.setenv("PATH", str(sacct.parent), prepend=":")
    asked = provider(max_blocks=1)
    asked.script_dir = str(tmp_path)
    inner = htex(1, provider=asked, launch_cmd="sleep 600")
    inner.run_dir = str(tmp_path)
    with nothing_left():
        inner.start()
        try:
            seen = Seen(inner)
            assert seen.blocks.request("young", ONE)
            inner.poll_facade()
            assert [status.state for status in inner.status_facade.values()] == [JobState.MISSING]
            assert seen.states() == [JobState.PENDING]
            seen.wait_for_start("young")
            assert seen.states() == [JobState.RUNNING]
            assert not asked.resources[str(slurm.blocks()[0].number)]["status"].terminal
            seen.blocks.close()
            wait_until(lambda: not slurm.blocks(), "an empty queue")
        finally:
            inner.shutdown()


def test_what_cannot_be_cancelled_in_the_end_is_cancelled_when_slurm_is_back(
    slurm: Slurm, inner: Any
) -> None:
    seen = Seen(inner)
    seen.blocks.start()
    watchdog = seen.blocks._watchdog._process.pid
    assert seen.blocks.request("left", ONE)
    seen.wait_for_start("left")
    slurm.stop_controller()
    try:
        assert not seen.blocks.close()
    finally:
        slurm.start_controller()
    wait_until(lambda: not slurm.blocks(), "an empty queue")
    wait_until(lambda: _has_ended(watchdog), "the end of the watchdog")


def _has_ended(pid: int) -> bool:
    found = subprocess.run(["ps", "-o", "stat=", str(pid)], capture_output=True, text=True)
    return found.stdout.strip()[:1] in ("", "Z")


def _seconds_between(*times: str) -> float:
    import datetime

    first, last = map(datetime.datetime.fromisoformat, times)
    assert all(a <= b for a, b in itertools.pairwise([first, last]))
    return (last - first).total_seconds()
