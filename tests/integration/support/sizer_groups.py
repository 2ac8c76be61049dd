"""One sized executor over several inner ones, and what is known of who ran what."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import psutil
from sizer_runs import alive, htex, most_given_out

from parsl_sizer import Outcome, SizedExecutor
from parsl_sizer.archive.open import open_archive
from parsl_sizer.engines.several import group_of
from parsl_sizer.model import Ending

NODES = {"big": "cores=2,memory=4GB", "standard": "cores=2,memory=1GB"}
SIZES = {"big": 4e9, "standard": 1e9}


def two_groups(*, blocks: int = 1, **options: Any) -> SizedExecutor:
    """Two groups on this machine whose nodes differ in memory."""
    inner = options.pop("inner", None) or [htex(2, label=label, blocks=blocks) for label in NODES]
    settings = {"node": NODES, "kinds": ["memory"], "report": False, "archive": False}
    return SizedExecutor(inner, **{**settings, **options})


def member(executor: SizedExecutor, label: str) -> Any:
    """The inner executor of this label."""
    return next(one for one in executor.inner.members if one.label == label)


def nodes_of(executor: SizedExecutor) -> Counter[str]:
    """How many nodes of each group are known to be here."""
    return Counter(node.group for node in list(executor._driver._nodes.values()))


def recorded(archive: Path) -> list[Outcome]:
    """All attempts of runs that are over, the first to end first."""
    found = open_archive(archive, read_only=True)
    try:
        outcomes = [entry.outcome for entry in found.entries()]
        return sorted(outcomes, key=lambda outcome: outcome.ended_at)
    finally:
        found.close()


def done_by(outcomes: Iterable[Outcome]) -> Counter[str]:
    """How many tasks each group finished."""
    return Counter(
        group_of(outcome.attempt.node) for outcome in outcomes if outcome.ending is Ending.DONE
    )


def most_by_node(outcomes: Sequence[Outcome]) -> dict[str, float]:
    """The most memory that was given out at one time, by the group of the node."""
    nodes = {outcome.attempt.node for outcome in outcomes if outcome.attempt.node}
    return {
        node: most_given_out([one for one in outcomes if one.attempt.node == node])
        for node in nodes
    }


def kill_managers(executor: SizedExecutor, label: str) -> None:
    """As if all nodes of a group lost power: managers, workers and what these started."""
    managers = alive(f"--logdir={member(executor, label).logdir} ")
    assert managers
    for manager in managers:
        for process in [manager, *manager.children(recursive=True)]:
            with contextlib.suppress(psutil.Error):
                process.kill()
