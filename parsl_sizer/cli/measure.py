"""One strategy on one trace: what `replay` and `compare` both do."""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from parsl_sizer.model import Kind, Resources, SizerError, TraceError, format_amount
from parsl_sizer.report import Metrics
from parsl_sizer.simulator import Row, TraceHindsight, read
from parsl_sizer.simulator.replay import replay
from parsl_sizer.simulator.trace import known_kinds
from parsl_sizer.sizing.categories import Categories
from parsl_sizer.strategies import Setting
from parsl_sizer.strategies.catalog import family

from .output import Advance, say, ticking

WARNINGS = 3
"""So many faults of a strategy are told; a broken one has one per category."""

FIRST_LINES = 5
"""So many impossible rows are named."""


@dataclass(frozen=True, slots=True)
class Trace:
    """A trace on disk, by the name that the user gave it."""

    name: str
    path: Path

    def rows(self) -> Iterator[Row]:
        return read(self.path, name=self.name)

    def lines(self) -> int:
        """About how many tasks it has: for the progress bar, far quicker than reading."""
        with self.path.open("rb") as file:
            return sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(1 << 20), b"")) - 1


@contextmanager
def opened(name: str) -> Iterator[Trace]:
    """The trace of that name; what can be read only once is copied to a file first."""
    path = Path(name)
    if name != "-" and (path.is_file() or path.is_dir() or not path.exists()):
        yield Trace(name, path)
        return
    with tempfile.NamedTemporaryFile(prefix="parsl-sizer-", suffix=".csv") as copy:
        try:
            if name == "-":
                shutil.copyfileobj(sys.stdin.buffer, copy)
            else:
                with path.open("rb") as pipe:
                    shutil.copyfileobj(pipe, copy)
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise TraceError(f"The trace {name} cannot be read: {reason}.") from None
        copy.flush()
        yield Trace("standard input" if name == "-" else name, Path(copy.name))


@dataclass(slots=True)
class Impossible:
    """The rows that exceed the node: how many per kind, and where the first are."""

    node: Resources
    counts: dict[Kind, int] = field(default_factory=dict)
    lines: dict[Kind, list[int]] = field(default_factory=dict)

    def add(self, kinds: frozenset[Kind], line: int) -> None:
        for kind in kinds:
            self.counts[kind] = self.counts.get(kind, 0) + 1
            first = self.lines.setdefault(kind, [])
            if len(first) < FIRST_LINES:
                first.append(line)

    def sentence(self) -> str | None:
        """What to tell the user, if there are any."""
        if not self.counts:
            return None
        parts = []
        for kind, count in sorted(self.counts.items()):
            more = ", …" if count > FIRST_LINES else ""
            lines = ", ".join(map(str, self.lines[kind])) + more
            has = format_amount(kind, self.node[kind])
            rows = "1 row needs" if count == 1 else f"{count:,} rows need"
            place = "line" if count == 1 else "lines"
            parts.append(f"{rows} more {kind.value} than the {has} of the node ({place} {lines})")
        return f"Impossible and left out: {'; '.join(parts)}."


@dataclass(frozen=True, slots=True)
class Measured:
    """What a strategy cost, and how long the replay took."""

    metrics: Metrics
    impossible: Impossible
    seconds: float


class UnusableStrategy(SizerError):
    """A strategy of that name is there, but it cannot be loaded or made."""


@dataclass(frozen=True, slots=True)
class Bench:
    """A trace, and the conditions under which strategies are tried on it.

    What the strategies may know beforehand is found out once for all of them.
    """

    trace: Trace
    arguments: Namespace
    kinds: tuple[Kind, ...]
    hindsight: TraceHindsight

    @classmethod
    def of(cls, trace: Trace, arguments: Namespace, *, keep: int | None = 1) -> Bench:
        hindsight = TraceHindsight(trace.rows, arguments.node, keep=keep)
        return cls(trace, arguments, known_kinds(trace.path, name=trace.name), hindsight)

    def categories(self, spec: str, *, lag: int) -> Categories:
        """The strategy for the kinds that the trace has."""
        asked = self.arguments
        setting = Setting(self.kinds, asked.objective, asked.seed, self.hindsight)
        try:
            made = family(spec, setting)
        except SizerError:
            raise
        except Exception as error:  # a plug-in may fail in any way
            raise UnusableStrategy(f"Strategy {spec!r} cannot be made: {error}.") from error
        return Categories(made, kinds=self.kinds, lag=lag, warn=_warner(spec))

    def rows(self) -> Iterator[Row]:
        return self.hindsight.followed(self.trace.rows())


def _warner(spec: str) -> Callable[[str], None]:
    said = 0

    def warn(sentence: str) -> None:
        nonlocal said
        said += 1
        if said <= WARNINGS:
            say(f"{spec}: {sentence}")
        elif said == WARNINGS + 1:
            say(f"{spec}: further faults of this strategy are not shown.")

    return warn


def measure(
    bench: Bench, categories: Categories, advance: Advance, *, per_category: bool = False
) -> Measured:
    """Replay the trace task by task, in memory that does not grow with it."""
    started = time.perf_counter()
    asked = bench.arguments
    metrics = Metrics(asked.node, together=asked.together, per_category=per_category)
    impossible = Impossible(asked.node)
    replayed = replay(bench.rows(), categories, asked.node, ttf=asked.ttf, together=asked.together)
    for task in ticking(replayed, advance):
        row = task.row
        metrics.add(
            row.peak,
            row.time_s,
            task.outcomes,
            category=row.task.category,
            impossible=task.impossible,
        )
        if task.impossible:
            impossible.add(task.impossible, row.line)
    return Measured(metrics, impossible, time.perf_counter() - started)


def conditions(arguments: Namespace) -> dict[str, object]:
    """What a result was measured under, as JSON has it."""
    node: Resources = arguments.node
    return {
        "trace": arguments.trace,
        "lag": arguments.lag,
        "ttf": arguments.ttf,
        "objective": arguments.objective,
        "together": arguments.together,
        "seed": arguments.seed,
        "node": {
            "cores": node.cores,
            "memory_mb": node.memory / 1e6,
            "disk_mb": node.disk / 1e6,
            "gpus": node.gpus,
        },
    }


def described(arguments: Namespace) -> str:
    """The same for people."""
    node = ", ".join(
        f"{format_amount(kind, amount)} {'' if kind is Kind.CORES else kind.value}".strip()
        for kind, amount in arguments.node.items()
        if amount
    )
    failing = "all kinds together" if arguments.together else "each kind by itself"
    return (
        f"lag {arguments.lag}, time to failure {arguments.ttf:g}, objective "
        f"{arguments.objective}, {failing}, node of {node}"
    )
