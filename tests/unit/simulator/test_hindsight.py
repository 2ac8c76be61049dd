"""What a replay can know beforehand."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from parsl_sizer.model import Kind, Resources
from parsl_sizer.simulator import Row, TraceHindsight
from parsl_sizer.simulator.trace import parse
from parsl_sizer.strategies import Hindsight

TRACE = ("category,time_s,memory_mb,cores", "a,1,100,1", "b,1,90000,1", "a,1,300,")


class Opened:
    """Counts how often the trace was read."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self) -> Iterator[Row]:
        self.times += 1
        return parse(TRACE)


def test_the_trace_is_read_once_and_only_if_it_is_asked_for() -> None:
    opened = Opened()
    known = TraceHindsight(opened, Resources(memory=64e9, cores=16))
    assert isinstance(known, Hindsight)
    assert [known.peak(row.task) for row in known.followed(opened())] == [
        row.peak for row in parse(TRACE)
    ]
    assert opened.times == 1
    assert known.maximum == {Kind.MEMORY: 300e6, Kind.CORES: 1.0}
    assert known.categories == 2
    assert opened.times == 2


def test_a_peak_is_forgotten_when_its_task_is_over() -> None:
    known = TraceHindsight(lambda: parse(TRACE), Resources(memory=64e9))
    first, *_ = list(known.followed(parse(TRACE)))
    with pytest.raises(KeyError):
        known.peak(first.task)


def test_peaks_are_kept_for_a_queue() -> None:
    known = TraceHindsight(lambda: parse(TRACE), Resources(memory=64e9), keep=None)
    rows = list(known.followed(parse(TRACE)))
    assert [known.peak(row.task) for row in rows] == [row.peak for row in rows]
