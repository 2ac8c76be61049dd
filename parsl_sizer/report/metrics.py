"""What a strategy cost: used, wasted and retried, per kind, per category and in all.

Outcomes are added one by one, in order; nothing is kept but sums. The definitions,
with a worked example, are in docs/metrics.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from parsl_sizer.model import MB, NOTHING, Amounts, Kind, Outcome, Resources, is_bytes

KINDS = (Kind.MEMORY, Kind.CORES, Kind.DISK)
"""The kinds that are reported, memory first: it is what tasks die of."""


@dataclass(slots=True)
class Tally:
    """The sums over the tasks added so far, for one kind of resource.

    Amounts are in the kind's own unit times seconds (bytes or cores). A measure that
    these tasks leave undefined is None, never NaN.

    >>> tally = Tally()
    >>> tally.add(peak=3.0, time_s=10.0, whole=16.0, allocated=4.0, failed=[(2.0, 10.0)])
    >>> tally.used, tally.fragmentation, tally.failed, tally.waste, tally.maq
    (30.0, 10.0, 20.0, 30.0, 0.5)
    """

    tasks: int = 0
    """Tasks whose peak is known and that a node can hold."""
    retries: int = 0
    """Attempts that ran out of this kind and were followed by another."""
    impossible: int = 0
    """Tasks that need more than the node has; they are in no other figure."""
    exhausted: int = 0
    """Tasks whose last attempt ran out as well."""
    used: float = 0.0
    """Peak x time, summed over the tasks that finished."""
    fragmentation: float = 0.0
    """(Allocation - peak) x time, of the attempts that finished."""
    failed: float = 0.0
    """Allocation x time, of the attempts that ran out."""
    whole_waste: float = 0.0
    """What the waste would be with the whole node for every task."""
    efficiency: float = 0.0
    """Each task's peak over the sum of its allocations, summed."""
    timed: int = 0
    """Tasks that took time and were given something: those that throughput is about."""
    ran_s: float = 0.0
    """The time of the timed tasks."""
    held_s: float = 0.0
    """The time of all the attempts at the timed tasks."""
    rate: float = 0.0
    """1 / the last allocation, summed over the timed tasks."""
    largest_peak: float = 0.0
    """The largest peak of the timed tasks."""

    def add(
        self,
        peak: float,
        time_s: float,
        whole: float,
        allocated: float | None,
        failed: Sequence[tuple[float, float]] = (),
    ) -> None:
        """Take in a task on a node that has `whole`.

        Its last attempt held within `allocated` (None if it did not); the `failed` ones
        before it are pairs of allocation and time.
        """
        self.tasks += 1
        sizes = held_s = 0.0
        for size, seconds in failed:
            self.failed += size * seconds
            sizes += size
            held_s += seconds
        if allocated is None:
            self.exhausted += 1
            self.retries += max(len(failed) - 1, 0)
            return
        self.retries += len(failed)
        self.used += peak * time_s
        self.fragmentation += (allocated - peak) * time_s
        self.whole_waste += (whole - peak) * time_s
        sizes += allocated
        # Nothing given and nothing used: nothing was lost.
        self.efficiency += peak / sizes if sizes else 1.0
        if time_s and allocated:
            self.timed += 1
            self.ran_s += time_s
            self.held_s += held_s + time_s
            self.rate += 1.0 / allocated
            self.largest_peak = max(self.largest_peak, peak)

    @property
    def waste(self) -> float:
        """What was allocated and not used."""
        return self.fragmentation + self.failed

    @property
    def allocated(self) -> float:
        """Allocation x time, over all attempts."""
        return self.used + self.waste

    @property
    def maq(self) -> float | None:
        """Memory allocation quality: used / allocated.

        C. Witt, D. Wagner and U. Leser, "Feedback-Based Resource Allocation for Batch
        Scheduling of Scientific Workflows", HPCS 2019, equation 4.
        """
        return _ratio(self.used, self.allocated)

    @property
    def wrr(self) -> float | None:
        """Waste reduction ratio: 1 - waste / the waste with whole nodes.

        T. S. Phung et al., "Not All Tasks Are Created Equal", WORKS 2021, section VI.
        """
        ratio = _ratio(self.waste, self.whole_waste)
        return None if ratio is None else 1.0 - ratio

    @property
    def ate(self) -> float | None:
        """Average task efficiency: the mean of peak / sum of allocations (same paper)."""
        return _ratio(self.efficiency, self.tasks)

    @property
    def throughput(self) -> float | None:
        """Tasks done per resources and time, relative to the largest peak for every task.

        B. Tovar et al., "A Job Sizing Strategy for High-Throughput Scientific
        Workflows", TPDS 2018, section 3.4.2, normalised as in its figures 8 to 12.
        """
        if not self.timed:
            return None
        side_by_side = self.largest_peak * self.rate / self.timed
        return side_by_side * (self.ran_s / self.held_s)


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole else None


class Metrics:
    """The tallies of a run: per kind in all and, if wanted, per category.

    By default each kind is by itself: it is charged for a task's attempts up to the
    first that did not run out of it, as if the others had not been limited. With
    `together` every attempt is charged to every kind.
    """

    def __init__(
        self, node: Resources, *, together: bool = False, per_category: bool = False
    ) -> None:
        self.node = node
        self.together = together
        self.tasks = 0
        self.impossible = 0
        self._retries = 0
        self._exhausted = 0
        self.kinds: Mapping[Kind, Tally] = {kind: Tally() for kind in KINDS}
        self.categories: dict[str, dict[Kind, Tally]] = {}
        self._per_category = per_category
        self._whole = {kind: node[kind] for kind in KINDS}

    @property
    def retries(self) -> int:
        """Attempts after a task's first: memory's, or of all kinds together."""
        return self._retries if self.together else self.kinds[Kind.MEMORY].retries

    @property
    def attempts(self) -> int:
        """The first attempts of all tasks that the node can hold, and the retries."""
        return self.tasks - self._not_tried + self.retries

    @property
    def exhausted(self) -> int:
        """Tasks that were never done: the node cannot hold them, or ran out in the end."""
        ran_out = self._exhausted if self.together else self.kinds[Kind.MEMORY].exhausted
        return self._not_tried + ran_out

    @property
    def _not_tried(self) -> int:
        return self.impossible if self.together else self.kinds[Kind.MEMORY].impossible

    def add(
        self,
        peak: Amounts,
        time_s: float,
        outcomes: Sequence[Outcome],
        *,
        category: str = "",
        impossible: frozenset[Kind] = NOTHING,
    ) -> None:
        """Take in a task: its true peak and time, and how its attempts ended.

        `impossible` are the kinds in which it exceeds the node.
        """
        self.tasks += 1
        self.impossible += bool(impossible)
        if outcomes:
            self._retries += len(outcomes) - 1
            self._exhausted += bool(outcomes[-1].exhausted)
        for kind, tally in self.kinds.items():
            if kind in peak:
                tallies = [tally]
                if self._per_category:
                    by_kind = self.categories.setdefault(category, {})
                    tallies.append(by_kind.setdefault(kind, Tally()))
                if kind in impossible:
                    for tally in tallies:
                        tally.impossible += 1
                elif outcomes:
                    self._charge(kind, peak[kind], time_s, outcomes, tallies)

    def _charge(
        self,
        kind: Kind,
        peak: float,
        time_s: float,
        outcomes: Sequence[Outcome],
        tallies: Sequence[Tally],
    ) -> None:
        whole = self._whole[kind]
        failed: list[tuple[float, float]] = []
        held: float | None = None
        for outcome in outcomes:
            # What a strategy does not control, a task may have all of.
            allocated = outcome.attempt.allocation.get(kind, whole)
            ran_out = outcome.exhausted
            if not ran_out or not (self.together or kind in ran_out):
                held = allocated
                break
            failed.append((allocated, outcome.usage.wall_s))
        for tally in tallies:
            tally.add(peak, time_s, whole, held, failed)


def summary(metrics: Metrics) -> dict[str, object]:
    """The figures of a run as JSON has them: MB·s and core·s, None where undefined.

    Per category too, if the metrics were kept per category: there a kind that is not
    known of any task is absent.
    """
    figures: dict[str, object] = {
        "tasks": metrics.tasks,
        "attempts": metrics.attempts,
        "retries": metrics.retries,
        "exhausted": metrics.exhausted,
        "impossible": metrics.impossible,
    }
    figures |= _by_kind(metrics.kinds)
    if metrics.categories:
        figures["categories"] = {
            category: _by_kind(tallies) for category, tallies in metrics.categories.items()
        }
    return figures


def _by_kind(tallies: Mapping[Kind, Tally]) -> dict[str, object]:
    return {kind.value: measures(kind, tally) for kind, tally in tallies.items()}


def measures(kind: Kind, tally: Tally) -> dict[str, float | None]:
    """The figures of one kind. Of a kind that no task has, only the counts are not None."""
    unit = MB if is_bytes(kind) else 1.0
    amounts = {
        "used": tally.used,
        "allocated": tally.allocated,
        "waste": tally.waste,
        "fragmentation": tally.fragmentation,
        "failed": tally.failed,
    }
    return {
        "tasks": tally.tasks,
        **{name: amount / unit if tally.tasks else None for name, amount in amounts.items()},
        "maq": tally.maq,
        "wrr": tally.wrr,
        "ate": tally.ate,
        "throughput": tally.throughput,
        "retries": tally.retries,
        "exhausted": tally.exhausted + tally.impossible,
        "impossible": tally.impossible,
    }
