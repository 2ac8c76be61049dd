"""The laws of strategies: each is a function, and says what it saw if it is broken.

A law takes a name of the catalog (with options, if need be) or a builder,
``build(setting) -> Family``; it makes new families of it as it likes.
"""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from dataclasses import replace
from itertools import product

from parsl_sizer.model import Attempt, Ending, Kind, Outcome, Resources, TaskInfo, Usage
from parsl_sizer.sizing.categories import MAX_ATTEMPTS
from parsl_sizer.strategies import Proposal

from .footprint import footprint
from .lessons import CATEGORIES, NODE, SETTING, lesson, lessons, task
from .trial import PROBES, WAYS_TO_FAIL, Subject, Trial, failed, name_of

MANY = 200
"""Lessons after which a strategy has settled."""

ODD_NODES = (
    NODE,
    Resources(cores=1, memory=5e8, disk=0.0),
    Resources(cores=1024, memory=64e12, disk=1e15),
)


def check_strategy(subject: Subject) -> None:
    """All the laws.

    >>> check_strategy("whole-machine")
    """
    for law in LAWS:
        law(subject)


def check_propose_before_learning(subject: Subject) -> None:
    """A strategy that has learned nothing proposes an amount of every kind it is to size."""
    for info in PROBES:
        proposal = Trial(subject).propose(info)
        if set(proposal.amounts) != set(SETTING.kinds):
            raise _broken(
                subject,
                "it proposes every kind it is to size, even before it has learned",
                f"for task {info.task_id!r} it proposed {_shown(proposal)}",
            )


def check_proposals_are_plain(subject: Subject) -> None:
    """A proposal is made of kinds, Python's own numbers and a reason.

    It travels into tasks and archives, where there may be no numpy.
    """
    trial = Trial(subject)
    for taught in (0, MANY):
        trial.learn(lessons(taught))
        for proposal in trial.proposals():
            plain = isinstance(proposal, Proposal) and all(
                isinstance(kind, Kind) and type(amount) in (int, float)
                for kind, amount in proposal.amounts.items()
            )
            if not (plain and str(proposal.why)) or b"numpy" in pickle.dumps(proposal):
                raise _broken(
                    subject,
                    "a Proposal has kinds, plain numbers and a reason",
                    f"after {taught} lessons it proposed {proposal!r}",
                )


def check_reasons_last(subject: Subject) -> None:
    """A reason says the same however late it is read."""
    trial = Trial(subject).learn(lessons(30))
    proposals = trial.proposals()
    at_once = [str(proposal.why) for proposal in proposals]
    trial.learn(lessons(MANY))
    for proposal, said in zip(proposals, at_once, strict=True):
        if str(proposal.why) != said:
            raise _broken(
                subject,
                "a reason does not change",
                f"it said {said!r} and, after it had learned more, {str(proposal.why)!r}",
            )


def check_propose_is_pure(subject: Subject) -> None:
    """Proposing changes nothing, neither now nor for what is learned later."""
    law = "propose is pure"
    quiet, asked = Trial(subject), Trial(subject)
    for number, outcome in enumerate(lessons(MANY)):
        quiet.learn([outcome])
        asked.learn([outcome])
        info = task(10**7 + number, outcome.attempt.task.category)
        first = asked.propose(info)
        failures = [failed(info, 1, first, frozenset({Kind.MEMORY}))]
        asked.propose(info, failures)
        if len(failures) != 1:
            raise _broken(subject, law, f"it made {len(failures)} failures of the one it was given")
        if (number + 1) % 100 == 0:
            expected = quiet.proposals()
            _same(
                subject, law, "with and without proposals in between", expected, asked.proposals()
            )
            _same(subject, law, "asked twice", expected, quiet.proposals())


def check_same_lessons_same_proposals(subject: Subject) -> None:
    """The same outcomes in the same order give the same proposals: replaying is the checkpoint."""
    one, other = (Trial(subject).learn(lessons(MANY)) for _ in range(2))
    law = "the same lessons give the same proposals"
    _same(subject, law, "from two families", one.proposals(), other.proposals())


def check_families_are_independent(subject: Subject) -> None:
    """What one family learns does not reach another: two runs in a process are two runs."""
    before = Trial(subject).learn(lessons(30)).proposals()
    Trial(subject).learn(lessons(MANY))
    after = Trial(subject).learn(lessons(30)).proposals()
    law = "families share nothing"
    _same(subject, law, "before and after another family learned", before, after)


def check_failure_grows_only_what_ran_out(subject: Subject) -> None:
    """After a failure the kinds that ran out get more, and the others what they had."""
    for taught, learning in (0, False), (MANY, False), (MANY, True):
        trial = Trial(subject).learn(lessons(taught))
        for info, way in product(PROBES, WAYS_TO_FAIL):
            for failures, proposal in trial.climb(info, way, learning=learning):
                if failures:
                    _grown(subject, failures[-1], proposal)


def check_attempts_are_bounded(subject: Subject) -> None:
    """However often a task fails, it soon has the largest node."""
    for taught in (0, MANY):
        trial = Trial(subject).learn(lessons(taught))
        for info, way in product(PROBES, WAYS_TO_FAIL):
            attempts = sum(1 for _ in trial.climb(info, way))
            if attempts > MAX_ATTEMPTS:
                raise _broken(
                    subject,
                    f"a task has the largest node after at most {MAX_ATTEMPTS} attempts",
                    f"task {info.task_id!r} had {attempts} after {taught} lessons",
                )


def check_never_above_the_largest_node(subject: Subject) -> None:
    """Every amount is between 0 and what the largest node has, whatever node that is."""
    for taught in (0, 3, MANY):
        trial = Trial(subject).learn(lessons(taught))
        for largest in ODD_NODES:
            for proposal in trial.proposals(largest):
                _within(subject, proposal, largest, f"after {taught} lessons")


def check_extreme_lessons_do_no_harm(subject: Subject) -> None:
    """After lessons that are hard to believe, proposals are still amounts that a node has."""
    trial = Trial(subject)
    for number, outcome in enumerate(_extreme_lessons()):
        trial.learn([outcome, lesson(number)])
        for info in (*PROBES[:4], *_extreme_tasks()):
            _within(subject, trial.propose(info), NODE, f"after {outcome}")


def check_memory_is_bounded(
    subject: Subject, *, learned: int = 12_000, limit: float = 500_000
) -> None:
    """However much a category learns, it stops growing, at `limit` bytes per kind at most."""
    alone = replace(SETTING, kinds=(Kind.MEMORY,))  # the other kinds would only take longer
    strategy = Trial(subject, alone).strategy(CATEGORIES[0])
    sizes = []
    for number, outcome in enumerate(lessons(learned, CATEGORIES[0]), start=1):
        strategy.learn(outcome)
        if number % 100 == 0:
            strategy.propose(outcome.attempt.task, (), NODE)
        if number in (learned // 2, learned):
            sizes.append(footprint(strategy, ignoring=[SETTING, alone]))
    half, held = sizes
    if held > limit or held > 1.2 * half + 10_000:
        raise _broken(
            subject,
            f"memory is bounded, by {limit:.0f} bytes for a kind of a category",
            f"it holds {half} bytes after {learned // 2} lessons and {held} after {learned}",
        )


def check_a_new_category_is_light(
    subject: Subject, *, categories: int = 100, limit: float = 30_000
) -> None:
    """A category of few tasks holds little, `limit` bytes: there may be a hundred thousand."""
    trial = Trial(subject)
    for number in range(3 * categories):
        outcome = lesson(number, f"category {number % categories}")
        trial.learn([outcome])
        trial.propose(outcome.attempt.task)
    held = footprint(trial.family, trial.strategies, ignoring=[SETTING]) / categories
    if held > limit:
        raise _broken(
            subject,
            "a category of few tasks is light",
            f"with 3 lessons it holds {held:.0f} bytes, more than {limit:.0f}",
        )


LAWS: tuple[Callable[[Subject], None], ...] = (
    check_propose_before_learning,
    check_proposals_are_plain,
    check_reasons_last,
    check_propose_is_pure,
    check_same_lessons_same_proposals,
    check_families_are_independent,
    check_failure_grows_only_what_ran_out,
    check_attempts_are_bounded,
    check_never_above_the_largest_node,
    check_extreme_lessons_do_no_harm,
    check_memory_is_bounded,
    check_a_new_category_is_light,
)
"""Every law, in the order in which `check_strategy` runs them."""


def _extreme_lessons() -> list[Outcome]:
    found: list[Outcome] = []
    for peak in (0.0, 1e-9, 1.0, 1e18, 1e24):
        for wall_s in (0.0, 1e-9, 1e12):
            for size in (0.0, -1.0, 1e300, math.nan, math.inf):
                info = TaskInfo(len(found), CATEGORIES[0], features={"input_size": size})
                usage = Usage(dict.fromkeys(SETTING.kinds, peak), wall_s)
                attempt = Attempt(info, 1, dict.fromkeys(SETTING.kinds, peak))
                found.append(Outcome(attempt, Ending.DONE, usage=usage))
                ran_out = frozenset({Kind.MEMORY})
                found.append(Outcome(attempt, Ending.EXHAUSTED, usage=usage, exhausted=ran_out))
    return found


def _extreme_tasks() -> list[TaskInfo]:
    return [
        TaskInfo(f"input of {size}", CATEGORIES[0], features={"input_size": size})
        for size in (-1e9, 1e-300, 1e300, math.nan, math.inf, -math.inf)
    ]


def _grown(subject: Subject, failure: Outcome, proposal: Proposal) -> None:
    held, ran_out = failure.attempt.allocation, failure.exhausted
    for kind in SETTING.kinds:
        amount = proposal.amounts[kind]
        if not (amount > held[kind] if kind in ran_out else amount == held[kind]):
            kinds = " and ".join(sorted(kind.value for kind in ran_out))
            raise _broken(
                subject,
                "a failure grows what ran out and nothing else",
                f"task {failure.attempt.task.task_id!r} ran out of {kinds} with {dict(held)}, "
                f"and {kind.value} became {amount!r}",
            )


def _within(subject: Subject, proposal: Proposal, largest: Resources, when: str) -> None:
    for kind, amount in proposal.amounts.items():
        if not 0 <= amount <= largest[kind]:
            raise _broken(
                subject,
                "an amount is between 0 and the largest node",
                f"{when} it proposed {amount!r} for {kind.value}, of which there is "
                f"{largest[kind]!r}",
            )


def _same(
    subject: Subject, law: str, when: str, expected: list[Proposal], found: list[Proposal]
) -> None:
    for one, other in zip(expected, found, strict=True):
        if _shown(one) != _shown(other):
            raise _broken(subject, law, f"{when}, it proposed {_shown(one)} and {_shown(other)}")


def _shown(proposal: Proposal) -> str:
    amounts = ", ".join(f"{kind.value} {amount!r}" for kind, amount in proposal.amounts.items())
    return f"{amounts} ({proposal.why})"


def _broken(subject: Subject, law: str, seen: str) -> AssertionError:
    return AssertionError(f"{name_of(subject)} breaks the law that {law}: {seen}.")
