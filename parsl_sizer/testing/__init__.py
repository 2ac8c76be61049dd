"""What authors of strategies test with: public laws, lessons to learn from, a clock to set.

A strategy is given by name or by its builder; `lessons` makes repeatable outcomes for
it to learn; each law (`check_...`) asks it for proposals and raises AssertionError
with a sentence that names strategy, law and values. `check_strategy` runs them all.
"""

from .clock import ManualClock
from .footprint import footprint
from .lessons import NODE, SETTING, lesson, lessons, peak_of, task
from .strategy_laws import (
    LAWS,
    check_a_new_category_is_light,
    check_attempts_are_bounded,
    check_extreme_lessons_do_no_harm,
    check_failure_grows_only_what_ran_out,
    check_families_are_independent,
    check_memory_is_bounded,
    check_never_above_the_largest_node,
    check_proposals_are_plain,
    check_propose_before_learning,
    check_propose_is_pure,
    check_reasons_last,
    check_same_lessons_same_proposals,
    check_strategy,
)

__all__ = [
    "LAWS",
    "NODE",
    "SETTING",
    "ManualClock",
    "check_a_new_category_is_light",
    "check_attempts_are_bounded",
    "check_extreme_lessons_do_no_harm",
    "check_failure_grows_only_what_ran_out",
    "check_families_are_independent",
    "check_memory_is_bounded",
    "check_never_above_the_largest_node",
    "check_proposals_are_plain",
    "check_propose_before_learning",
    "check_propose_is_pure",
    "check_reasons_last",
    "check_same_lessons_same_proposals",
    "check_strategy",
    "footprint",
    "lesson",
    "lessons",
    "peak_of",
    "task",
]
