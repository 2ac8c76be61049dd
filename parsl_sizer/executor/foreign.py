"""Words in a specification that are not for us: what becomes of them.

Programs are written for one executor and run with another. What the inner executor takes is
passed on to it, if it can be what it takes there. Words that only other executors of Parsl
know are left out, which is said once. A word that nobody knows is a mistake.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from parsl.executors.errors import InvalidResourceSpecification

from parsl_sizer.engines import Engine

from .hints import NAMES, BadHint, is_number

ELSEWHERE = frozenset(
    {
        *("priority", "running_time_min", "exec_mode", "walltime"),
        *("num_nodes", "ranks_per_node", "num_ranks", "launcher_options"),  # MPIExecutor
        *("num_tasks", "cores_per_task", "gpus_per_task", "launch_cmd"),  # FluxExecutor
        *("ranks", "cores_per_rank", "gpus_per_rank", "mem_per_rank"),  # RADICAL-Pilot
    }
)
"""Words that executors of Parsl know, or programs give to all of them."""

NUMBERS = frozenset({"priority", "running_time_min"})


class UnknownWord(BadHint, InvalidResourceSpecification):
    """A word that nobody knows: to programs that catch Parsl's own refusal it is that."""

    def __init__(self, words: set[str], text: str) -> None:
        InvalidResourceSpecification.__init__(self, words, text)
        self.args = (words, text)

    def __str__(self) -> str:
        return str(self.args[1])


def passed_on(
    given: Mapping[str, object], engine: Engine, warn: Callable[[str], None]
) -> Mapping[str, object]:
    """Those of the words that the inner executor takes."""
    if not given:
        return given
    if unknown := [word for word in given if word not in ELSEWHERE and word not in engine.takes]:
        known = ", ".join((*NAMES, *sorted(engine.takes)))
        text = f"{unknown[0]!r} is no word that is known here; there are {known}."
        raise UnknownWord(set(unknown), text)
    nodes = given.get("num_nodes")
    if is_number(nodes) and nodes > 1:
        raise BadHint(
            f"num_nodes={nodes} is more than the one node that a task has here; give such tasks "
            "to an MPIExecutor of their own, which SizedExecutor leaves alone."
        )
    values = {word: _number(word, value) for word, value in given.items()}
    for word in values:
        # Our own queue goes by priority where the inner executor has none.
        if word not in engine.takes and word != "priority":
            warn(f"{engine.name} does not know {word!r}: it is left out of what tasks ask for.")
    return {word: value for word, value in values.items() if word in engine.takes}


def _number(word: str, value: object) -> object:
    """The value, if it is the number that it has to be: a text would end HTEX's interchange."""
    if word not in NUMBERS:
        return value
    if not is_number(value) or math.isnan(value):
        raise BadHint(f"{word}={value!r} must be a number.")
    number = float(value)
    return int(number) if number.is_integer() else number
