"""When blocks are asked for and given back, under each policy."""

from __future__ import annotations

import math
from random import Random

import pytest

from parsl_sizer.scaling import (
    POLICIES,
    Action,
    BlockEnded,
    BlockStarted,
    CancelBlock,
    Event,
    Geometry,
    Planner,
    RequestBlock,
    Stage,
    StageEnded,
    StageExpected,
    StagesPlanned,
    StageStarted,
    Tick,
    UnknownPolicy,
    WaitEstimator,
    policy,
)

MANY, ONE = Geometry(4, 28), Geometry(1, 1)
STAGES = (Stage("align", MANY, expected_s=1000.0), Stage("merge", ONE, expected_s=100.0))


def planner(policy: str, max_blocks: int = 4, wait_s: float = 300.0, **more: float) -> Planner:
    """One that knows how long both geometries wait."""
    waits = WaitEstimator()
    for geometry in (MANY, ONE):
        waits.observe(geometry, wait_s, Random(1))
    return Planner(policy, waits, Random(1), max_blocks=max_blocks, **more)


def tell(planner: Planner, *events: tuple[float, Event]) -> list[Action]:
    """What is done about the last of these events."""
    actions: list[Action] = []
    for now, event in events:
        actions = planner.handle(event, now)
    return actions


def requests(actions: list[Action]) -> list[tuple[str, Geometry, tuple[str, ...]]]:
    return [
        (action.stage, action.geometry, action.after)
        for action in actions
        if isinstance(action, RequestBlock)
    ]


def cancelled(actions: list[Action]) -> list[str]:
    return [action.block for action in actions if isinstance(action, CancelBlock)]


def begun(planner: Planner) -> None:
    """The first stage runs from 0 to 1000."""
    tell(
        planner,
        (-300.0, StagesPlanned(STAGES)),
        (0.0, BlockStarted("align-1")),
        (0.0, StageStarted("align")),
    )


def test_a_big_job_asks_once_for_the_largest_and_keeps_it_to_the_end() -> None:
    big = planner("big-job")
    asked = tell(big, (0.0, StagesPlanned(STAGES)))
    assert requests(asked) == [("align", Geometry(4, 28), ())]
    assert tell(big, (9.0, BlockStarted("align-1")), (9.0, StageStarted("align"))) == []
    assert tell(big, (50.0, StageEnded("align")), (50.0, StageStarted("merge"))) == []
    assert cancelled(tell(big, (60.0, StageEnded("merge")))) == ["align-1"]


def test_per_stage_asks_when_the_stage_can_begin_and_gives_back_when_it_is_over() -> None:
    each = planner("per-stage")
    begun(each)
    assert each.due_at(0.0) is None
    assert tell(each, (999.0, Tick())) == []
    ended = tell(each, (1000.0, StageEnded("align")))
    assert cancelled(ended) == ["align-1"]
    assert requests(ended) == [("merge", ONE, ())]


@pytest.mark.parametrize(("name", "after"), [("asa", ("align-1",)), ("asa-naive", ())])
def test_asa_asks_as_long_before_as_the_queue_is_thought_to_take(
    name: str, after: tuple[str, ...]
) -> None:
    asa = planner(name)
    begun(asa)
    assert asa.due_at(0.0) == 700.0
    assert tell(asa, (699.0, Tick())) == []
    assert requests(tell(asa, (700.0, Tick()))) == [("merge", ONE, after)]
    assert asa.requested == ("merge-2",)
    assert asa.observed == ("align-1",)
    assert asa.planned == ("align", "merge")


def test_asa_asks_by_when_the_running_stage_is_said_to_end() -> None:
    asa = planner("asa")
    begun(asa)
    tell(asa, (10.0, StageExpected("align", 400.0)))
    assert asa.due_at(10.0) == 100.0


def test_asa_asks_while_the_stage_in_front_still_waits_where_the_queue_is_long() -> None:
    asa = planner("asa", wait_s=10_000.0)
    assert requests(tell(asa, (0.0, StagesPlanned(STAGES)))) == [("align", MANY, ())]
    assert asa.due_at(0.0) == 1000.0
    assert requests(tell(asa, (1000.0, Tick()))) == [("merge", ONE, ("align-1",))]


def test_asa_waits_for_the_end_of_a_stage_of_which_no_time_is_known() -> None:
    asa = planner("asa")
    unknown = (Stage("align", MANY), Stage("merge", ONE))
    tell(asa, (0.0, StagesPlanned(unknown)), (0.0, StageStarted("align")))
    assert asa.due_at(0.0) is None
    assert requests(tell(asa, (77.0, StageEnded("align")))) == [("merge", ONE, ())]


def test_stages_in_a_row_with_the_same_geometry_share_their_blocks() -> None:
    each = planner("per-stage")
    stages = (Stage("project", MANY), Stage("difference", MANY), Stage("add", ONE))
    assert len(tell(each, (0.0, StagesPlanned(stages)))) == 1
    tell(each, (1.0, BlockStarted("project-1")), (1.0, StageStarted("project")))
    assert tell(each, (2.0, StageEnded("project")), (3.0, StageStarted("difference"))) == []
    assert cancelled(tell(each, (4.0, StageEnded("difference")))) == ["project-1"]


def test_a_block_is_kept_and_used_if_that_costs_less_than_to_wait_for_another() -> None:
    naive = planner("asa-naive")
    begun(naive)
    tell(naive, (700.0, Tick()))
    assert tell(naive, (950.0, BlockStarted("merge-2"))) == []
    assert cancelled(tell(naive, (1000.0, StageEnded("align")))) == ["align-1"]
    assert naive.observed == ("align-1", "merge-2")


def test_a_block_that_is_earlier_than_that_is_given_back_and_asked_for_anew() -> None:
    naive = planner("asa-naive")
    begun(naive)
    tell(naive, (700.0, Tick()))
    assert cancelled(tell(naive, (710.0, BlockStarted("merge-2")))) == ["merge-2"]
    assert tell(naive, (711.0, BlockEnded("merge-2"))) == []
    assert naive.due_at(711.0) == 995.0, "the wait of 10 s was learned: within 5 s it is kept"
    assert requests(tell(naive, (995.0, Tick()))) == [("merge", ONE, ())]
    assert tell(naive, (995.0, BlockStarted("merge-3"))) == []


def test_a_stage_whose_block_was_given_back_gets_one_when_its_turn_comes_sooner() -> None:
    naive = planner("asa-naive")
    begun(naive)
    tell(naive, (700.0, Tick()), (710.0, BlockStarted("merge-2")), (711.0, BlockEnded("merge-2")))
    assert requests(tell(naive, (800.0, StageEnded("align")))) == [("merge", ONE, ())]


def test_a_block_is_given_back_when_nobody_knows_any_more_when_its_turn_comes() -> None:
    naive = planner("asa-naive")
    stages = (Stage("align", MANY), Stage("merge", ONE))
    tell(naive, (0.0, StagesPlanned(stages)), (0.0, BlockStarted("align-1")))
    tell(naive, (0.0, StageStarted("align")), (0.0, StageExpected("align", 300.0)))
    assert naive.requested == ("merge-2",)
    tell(naive, (1.0, StageExpected("align", math.inf)))
    assert cancelled(tell(naive, (2.0, BlockStarted("merge-2")))) == ["merge-2"]
    tell(naive, (3.0, BlockEnded("merge-2")))
    assert naive.due_at(3.0) is None
    assert requests(tell(naive, (9.0, StageEnded("align")))) == [("merge", ONE, ())]


def test_a_block_that_is_idle_for_as_long_as_another_would_take_is_given_back() -> None:
    naive = planner("asa-naive")
    begun(naive)
    tell(naive, (700.0, Tick()), (950.0, BlockStarted("merge-2")))
    assert naive.due_at(950.0) == 1200.0, "250 s, which it has waited"
    assert tell(naive, (1199.0, Tick())) == []
    assert cancelled(tell(naive, (1200.0, Tick()))) == ["merge-2"]
    assert tell(naive, (1201.0, BlockEnded("merge-2"))) == []
    assert naive.due_at(1201.0) is None, "it now waits for its turn"
    assert requests(tell(naive, (1500.0, StageEnded("align")))) == [("merge", ONE, ())]


def test_no_more_than_max_blocks_are_asked_for_until_others_have_ended() -> None:
    each = planner("per-stage", max_blocks=2)
    stages = (Stage("align", MANY, blocks=3), Stage("merge", ONE))
    assert len(requests(tell(each, (0.0, StagesPlanned(stages))))) == 2
    tell(each, (1.0, BlockStarted("align-1")), (1.0, StageStarted("align")))
    assert cancelled(tell(each, (2.0, StageEnded("align")))) == ["align-1", "align-2"]
    assert requests(tell(each, (3.0, BlockEnded("align-1")))) == [("merge", ONE, ())]


def test_a_later_stage_overtakes_one_in_front_that_waits_for_less_long() -> None:
    waits = WaitEstimator()
    for geometry, wait_s in ((ONE, 50.0), (MANY, 5000.0)):
        waits.observe(geometry, wait_s, Random(1))
    stages = (
        Stage("first", ONE, expected_s=1000.0),
        Stage("second", Geometry(1, 2), expected_s=1000.0),
        Stage("third", MANY),
    )
    waits.observe(Geometry(1, 2), 50.0, Random(1))
    naive = Planner("asa-naive", waits, Random(1), max_blocks=4)
    asked = requests(tell(naive, (0.0, StagesPlanned(stages))))
    assert asked == [("first", ONE, ()), ("third", MANY, ())]
    asa = Planner("asa", waits, Random(1), max_blocks=4)
    chain = requests(tell(asa, (0.0, StagesPlanned(stages))))
    assert [(stage, after) for stage, _, after in chain] == [
        ("first", ()),
        ("second", ("first-1",)),
        ("third", ("second-2",)),
    ]
    narrow = Planner("asa-naive", waits, Random(1), max_blocks=2)
    assert requests(tell(narrow, (0.0, StagesPlanned(stages)))) == [("first", ONE, ())]


def test_a_block_that_is_lost_is_asked_for_again() -> None:
    each = planner("per-stage")
    begun(each)
    assert requests(tell(each, (5.0, BlockEnded("align-1")))) == [("align", MANY, ())]


def test_a_request_that_failed_is_made_again_after_a_while() -> None:
    each = planner("per-stage", patience_s=20.0)
    tell(each, (0.0, StagesPlanned(STAGES)))
    assert tell(each, (1.0, BlockEnded("align-1"))) == []
    assert each.due_at(1.0) == 21.0
    assert requests(tell(each, (21.0, Tick()))) == [("align", MANY, ())]


def test_blocks_are_kept_for_a_while_lest_more_work_comes() -> None:
    each = planner("per-stage", patience_s=20.0)
    begun(each)
    assert cancelled(tell(each, (100.0, StageEnded("align")))) == []
    assert each.due_at(100.0) == 120.0
    assert cancelled(tell(each, (110.0, StageStarted("align")))) == []
    assert cancelled(tell(each, (125.0, Tick()))) == []
    assert cancelled(tell(each, (130.0, StageEnded("align")), (150.0, Tick()))) == ["align-1"]


def test_a_stage_that_is_planned_while_blocks_are_kept_uses_them() -> None:
    each = planner("per-stage", patience_s=20.0)
    tell(each, (0.0, StagesPlanned(STAGES[:1])), (1.0, BlockStarted("align-1")))
    tell(each, (1.0, StageStarted("align")), (2.0, StageEnded("align")))
    assert tell(each, (3.0, StagesPlanned((Stage("again", MANY),))), (99.0, Tick())) == []


def test_a_wait_that_another_block_made_longer_is_learned_as_a_limit() -> None:
    waits = WaitEstimator()
    asa = Planner("asa", waits, Random(1), max_blocks=4)
    waits.observe(ONE, 300.0, Random(1))
    begun(asa)
    tell(asa, (700.0, Tick()), (1000.0, StageEnded("align")), (1000.0, BlockEnded("align-1")))
    tell(asa, (1010.0, BlockStarted("merge-2")))
    assert waits.estimate(ONE, Random(1)) == 300.0
    assert waits.known[str(ONE)] == 2


def test_a_new_estimate_is_made_when_more_is_known_and_nothing_was_asked_for() -> None:
    waits = WaitEstimator()
    waits.observe(ONE, 300.0, Random(1))
    asa = Planner("asa", waits, Random(1), max_blocks=4)
    begun(asa)
    assert asa.due_at(0.0) == 700.0
    waits.observe(ONE, 100.0, Random(1))
    assert asa.due_at(0.0) == 900.0


def test_a_stage_is_served_by_the_blocks_that_run_for_it() -> None:
    each = planner("per-stage")
    tell(each, (0.0, StagesPlanned(STAGES)))
    assert each.serving("align") == ()
    tell(each, (1.0, BlockStarted("align-1")))
    assert (each.serving("align"), each.serving("merge")) == (("align-1",), ())


def test_an_end_that_is_told_twice_or_of_a_stranger_changes_nothing() -> None:
    each = planner("per-stage")
    begun(each)
    again = tell(each, (5.0, BlockEnded("align-1")), (6.0, BlockEnded("align-1")))
    assert again == []
    assert tell(each, (7.0, BlockEnded("stranger")), (7.0, BlockStarted("stranger"))) == []


def test_a_stage_is_planned_once_and_before_it_starts() -> None:
    each = planner("per-stage")
    with pytest.raises(ValueError, match="no stage 'align' was planned"):
        each.handle(StageStarted("align"), 0.0)
    each.handle(StagesPlanned(STAGES), 0.0)
    with pytest.raises(ValueError, match=r"planned once; these were before: \['merge'\]"):
        each.handle(StagesPlanned(STAGES[1:]), 0.0)


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(UnknownPolicy, match="'lucky' is no policy; there is 'big-job', 'per-st"):
        policy("lucky")
    with pytest.raises(ValueError, match="max_blocks must be 1 or more, not 0"):
        planner("asa", max_blocks=0)
    with pytest.raises(ValueError, match="stage 'a' needs a block or more, not 0"):
        Stage("a", ONE, blocks=0)


@pytest.mark.parametrize("name", POLICIES)
def test_with_one_block_at_most_every_policy_gets_to_the_end(name: str) -> None:
    only = planner(name, max_blocks=1)
    asked = tell(only, (0.0, StagesPlanned(STAGES)))
    now = 0.0
    for stage in ("align", "merge"):
        if asked:
            tell(only, (now, BlockStarted(requests_of(asked))))
        tell(only, (now, StageStarted(stage)))
        now += 500.0
        done = cancelled(tell(only, (now, StageEnded(stage))))
        asked = [answer for block in done for answer in tell(only, (now, BlockEnded(block)))]
    assert (only.requested, only.observed, only.planned) == ((), (), ())


def requests_of(actions: list[Action]) -> str:
    (request,) = actions
    return request.block
