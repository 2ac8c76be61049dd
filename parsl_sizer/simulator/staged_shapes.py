"""The workflows of the ASA paper: parallel and sequential stages in turn.

What is known of them is how they alternate (section 4.3), how long each ran in all, and what
a block for each stage cost beside one block for all of them (Table 1). So ours is that
parallel stages are of equal length, and sequential ones too; that a sequential stage has one
core; and that Statistics begins with a sequential one, since ASA waited less for it in all
than the first parallel stage waits in the queue.

A. Souza et al., "ASA - The Adaptive Scheduling Algorithm", 2024.
"""

from __future__ import annotations

from parsl_sizer.scaling import Geometry, Stage

from .staged import StagedWorkflow

PATTERNS = {"montage": "PSPS", "blast": "PS", "statistics": "SPSP"}
"""P is a parallel stage, S a sequential one. Stages of Montage that follow each other with
the same cores are one."""
MOST_PARALLEL = 0.99
"""Of the time of BLAST, whose merging costs less than the hour to which Table 1 is rounded."""
MACHINES = {28: ("hpc2n", 28), 56: ("hpc2n", 28), 112: ("hpc2n", 28)} | {
    160: ("uppmax", 20),
    320: ("uppmax", 20),
    640: ("uppmax", 20),
}
"""Where each scale ran, and how many cores a node has there."""


def geometries(cores: int) -> dict[str, Geometry]:
    """What the stages of a workflow at this scale ask for.

    >>> for kind, geometry in geometries(160).items():
    ...     print(kind, geometry)
    P 8 x 20 cores, uppmax
    S 1 x 1 cores, uppmax
    """
    machine, per_node = MACHINES[cores]
    return {
        "P": Geometry(cores // per_node, per_node, queue=machine),
        "S": Geometry(1, 1, queue=machine),
    }


def parallel_share(cores: int, per_stage_core_s: float, big_job_core_s: float) -> float:
    """How much of its time a workflow ran in parallel, from what it cost in stages and as one.

    >>> round(parallel_share(112, 20.0, 33.0), 3)
    0.603
    """
    ratio = per_stage_core_s / big_job_core_s
    return min(max((ratio * cores - 1) / (cores - 1), 0.0), MOST_PARALLEL)


def shaped(
    name: str, cores: int, execution_s: float, share: float, *, known: float = 1.0
) -> StagedWorkflow:
    """One of the three that runs for so long in all, this share of it in parallel.

    Stages are expected to take `known` times as long as they do.

    >>> made = shaped("blast", 28, 100.0, 0.75)
    >>> [stage.name for stage in made.stages], made.times_s
    (['P1', 'S2'], (75.0, 25.0))
    """
    pattern = PATTERNS[name]
    each = {"P": share * execution_s / pattern.count("P")}
    each["S"] = (1 - share) * execution_s / pattern.count("S")
    shape = geometries(cores)
    stages = tuple(
        Stage(f"{kind}{number}", shape[kind], expected_s=known * each[kind])
        for number, kind in enumerate(pattern, start=1)
    )
    return StagedWorkflow(f"{name} {cores}", stages, tuple(each[kind] for kind in pattern))
