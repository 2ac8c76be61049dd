from __future__ import annotations

import pytest

from parsl_sizer.model import Attempt, Ending, Kind, Outcome, Resources, TaskInfo, UnknownStrategy
from parsl_sizer.strategies import Setting, Strategy
from parsl_sizer.strategies.catalog import family

NODE = Resources(cores=16, memory=64.0, disk=64.0)
SETTING = Setting((Kind.CORES, Kind.MEMORY))
TASK = TaskInfo(1, "align")


def amounts(strategy: Strategy, *ran_out: Kind) -> list[tuple[float, ...]]:
    """What a task gets that runs out of these kinds, one after the other."""
    failures: list[Outcome] = []
    found = []
    for number, kind in enumerate((*ran_out, None), start=1):
        proposal = strategy.propose(TASK, failures, NODE)
        found.append(tuple(proposal.amounts.values()))
        if kind is not None:
            attempt = Attempt(TASK, number, proposal.amounts)
            failures.append(
                Outcome(attempt, Ending.EXHAUSTED, exhausted=frozenset({kind})),
            )
    return found


def test_it_starts_with_an_eighth_and_doubles_up_to_the_largest_node() -> None:
    strategy = family("doubling", Setting((Kind.MEMORY,)))("align")
    climbed = amounts(strategy, Kind.MEMORY, Kind.MEMORY, Kind.MEMORY)
    assert climbed == [(8.0,), (16.0,), (32.0,), (64.0,)]


def test_only_the_kind_that_ran_out_is_doubled() -> None:
    strategy = family("doubling", SETTING)("align")
    assert amounts(strategy, Kind.MEMORY, Kind.CORES) == [(2, 8), (2, 16), (4, 16)]


def test_all_kinds_double_together_as_in_the_paper_if_asked() -> None:
    strategy = family("doubling:together=true", SETTING)("align")
    assert amounts(strategy, Kind.MEMORY, Kind.CORES) == [(2, 8), (4, 16), (8, 32)]


def test_the_first_share_can_be_chosen_and_never_leads_above_the_node() -> None:
    strategy = family("doubling:initial=0.75", Setting((Kind.MEMORY,)))("align")
    assert amounts(strategy, Kind.MEMORY) == [(48.0,), (64.0,)]


@pytest.mark.parametrize("initial", ["0", "1.5", "-1", "nan", "half"])
def test_what_is_no_share_is_refused(initial: str) -> None:
    with pytest.raises(UnknownStrategy, match="initial must be a share above 0 and up to 1"):
        family(f"doubling:initial={initial}", SETTING)
