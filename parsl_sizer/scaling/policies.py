"""Which blocks does a workflow ask for, and when?

    big-job     one block for the whole workflow, as large as its largest stage needs
    per-stage   a block for each stage, asked for when the stage could begin
    asa         the same, asked for as long before as the queue is thought to take, and told
                not to start before the stage in front has given its own block back
    asa-naive   asa where the batch system knows no such dependencies

Each is a set of answers; what follows from them is the `Planner`'s.

A. Souza et al., "ASA - The Adaptive Scheduling Algorithm", 2024.
"""

from __future__ import annotations

from dataclasses import dataclass

from parsl_sizer.model import SizerError


class UnknownPolicy(SizerError, ValueError):
    """A policy that nobody knows."""


@dataclass(frozen=True)
class Policy:
    """How blocks are asked for."""

    name: str
    about: str
    is_whole: bool = False
    """Whether all stages share their blocks."""
    is_ahead: bool = False
    """Whether blocks are asked for before their stage can begin."""
    is_dependent: bool = False
    """Whether they are told to wait for the end of the blocks of the stage in front."""


POLICIES: dict[str, Policy] = {
    made.name: made
    for made in (
        Policy("big-job", "one block for the whole workflow", is_whole=True),
        Policy("per-stage", "a block for each stage, when it can begin"),
        Policy(
            "asa",
            "a block for each stage, ahead of time, after that of the stage in front",
            is_ahead=True,
            is_dependent=True,
        ),
        Policy("asa-naive", "a block for each stage, ahead of time", is_ahead=True),
    )
}


def policy(name: str) -> Policy:
    """The policy of this name.

    >>> policy("per-stage").about
    'a block for each stage, when it can begin'
    """
    found = POLICIES.get(name)
    if found is None:
        raise UnknownPolicy(f"{name!r} is no policy; there is {', '.join(map(repr, POLICIES))}.")
    return found
