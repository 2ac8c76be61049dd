"""Traces with known distributions: the same kind, size and seed give the same trace.

The five sets of Phung et al. ("Not All Tasks Are Created Equal", WORKS 2021; means
and deviations as in the sets that belong to the paper), the same bimodal one with
its mode changing half way, and the model of Witt et al. ("Feedback-Based Resource
Allocation for Batch Scheduling of Scientific Workflows", HPCS 2019, Table II) in
which memory is linear in the size of the input.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from random import Random

from parsl_sizer.model import MB, Amounts, Kind, TaskInfo

from .trace import Row

NODE_MB = 64_000.0
"""The node of Phung et al.; their sets have no task above it."""

LEAST_MB = 10.0

MODES: dict[str, tuple[tuple[float, float], ...]] = {
    "bimodal": ((32_000.0, 500.0), (8_000.0, 200.0)),
    "trimodal": ((32_000.0, 4_000.0), (11_000.0, 1_000.0), (16_000.0, 4_000.0)),
}
"""Mean and deviation, in MB, of each category's memory; the categories are mixed evenly."""

KINDS: dict[str, str] = {
    "uniform": "memory uniform from 10 to 40 GB",
    "normal": "memory normal, 8 GB on average with a deviation of 2 GB",
    "exponential": "memory exponential, 10 GB on average, at most 64 GB",
    "bimodal": "two categories, 32 and 8 GB, mixed",
    "trimodal": "three categories, 32, 16 and 11 GB, mixed",
    "phases": "one category: 32 GB in the first half of the trace, 8 GB in the second",
    "linear": "memory linear in the input's size in half of the categories",
}

ESTIMATES = "none, power2, power10 or max:FACTOR"

SCALE = 1 / 32
"""Witt et al. draw a category's mean from 1 GB to 1 TB for a pool of 1952 GB; with this
scale it fits the default node of a replay."""


def generate(
    kind: str,
    tasks: int,
    seed: int = 0,
    *,
    categories: int = 5,
    estimate: str | None = None,
    scale: float = SCALE,
) -> Iterator[Row]:
    """The rows of a trace of the given kind (one of `KINDS`).

    `categories` and `scale` are of the linear kind alone: how many abstract tasks it
    has, and what the amounts of Table II are multiplied by. `estimate` is how users
    estimate the memory of a category: ``power2`` or ``power10`` (the power nearest to
    its largest peak in GB), ``max:1.2`` (that peak times 1.2) or ``none``. Where it is
    not given, it is ``power2`` for the linear kind and ``none`` for the others.

    >>> [row] = generate("normal", 1, seed=7)
    >>> row.task.category, row.peak[Kind.CORES], row.time_s
    ('c1', 4.0, 500.0)
    """
    if kind not in KINDS:
        raise ValueError(f"no kind of trace is called {kind!r}; there are {', '.join(KINDS)}")
    if tasks < 1:
        raise ValueError(f"tasks must be 1 or more, not {tasks}")
    if categories < 1:
        raise ValueError(f"categories must be 1 or more, not {categories}")
    if not 0 < scale <= 1e6:
        raise ValueError(f"scale must be above 0 and at most 1e6, not {scale}")
    estimated = estimator(estimate or ("power2" if kind == "linear" else "none"))

    def draws() -> Iterator[_Draw]:
        random = Random(f"{kind} {seed}")
        if kind == "linear":
            return _linear(random, tasks, categories, scale)
        return _memory_only(kind, random, tasks)

    return _rows(draws, estimated)


_Draw = tuple[str, float | None, float, float, Amounts]
"""Category, input size in bytes, memory in MB, time in seconds, the other peaks."""


def _rows(
    draws: Callable[[], Iterator[_Draw]], estimated: Callable[[float], float] | None
) -> Iterator[Row]:
    largest: dict[str, float] = {}
    if estimated:
        # Users estimate from the largest peak of a category, so the draws are made twice.
        for category, _, memory, _, _ in draws():
            largest[category] = max(memory, largest.get(category, 0.0))
    requests = {category: estimated(peak) for category, peak in largest.items() if estimated}
    for line, (category, size, memory, time_s, others) in enumerate(draws(), start=2):
        features = {} if size is None else {"input_size": size}
        request = requests.get(category)
        requested = {} if request is None else {Kind.MEMORY: request * MB}
        task = TaskInfo(line, category, features=features, requested=requested)
        yield Row(line, task, {**others, Kind.MEMORY: memory * MB}, time_s)


def _memory_only(kind: str, random: Random, tasks: int) -> Iterator[_Draw]:
    """Phung et al. vary nothing but memory."""
    others = {Kind.CORES: 4.0, Kind.DISK: 4000 * MB}
    for category, memory in _memories(kind, random, tasks):
        within = min(max(memory, LEAST_MB), NODE_MB)
        yield category, None, round(within, 3), 500.0, others


def _memories(kind: str, random: Random, tasks: int) -> Iterator[tuple[str, float]]:
    if kind in MODES:
        yield from _mixed(MODES[kind], random, tasks)
        return
    before, after = MODES["bimodal"]
    for number in range(tasks):
        if kind == "uniform":
            yield "c1", random.uniform(10_000, 40_000)
        elif kind == "normal":
            yield "c1", random.gauss(8_000, 2_000)
        elif kind == "exponential":
            yield "c1", random.expovariate(1 / 10_000)
        else:
            yield "c1", random.gauss(*(before if 2 * number < tasks else after))


def _mixed(
    modes: tuple[tuple[float, float], ...], random: Random, tasks: int
) -> Iterator[tuple[str, float]]:
    """As many tasks of each mode, as far as possible, in random order."""
    left = [(tasks + number) // len(modes) for number in range(len(modes))]
    for _ in range(tasks):
        [chosen] = random.choices(range(len(modes)), left)
        left[chosen] -= 1
        yield f"c{chosen + 1}", random.gauss(*modes[chosen])


def _linear(random: Random, tasks: int, categories: int, scale: float) -> Iterator[_Draw]:
    """Witt et al., Table II and equation 5; what they leave open is ours.

    Ours: every other category is linear (theirs: each with a chance of one half), the
    share of the mean that does not depend on the input (up to a half), the time (a
    category's mean is from 10 to 1000 s, a task's from half to one and a half of it),
    one core, and disk unknown.
    """
    models = [MemoryModel(random, scale, is_linear=number % 2 == 0) for number in range(categories)]
    cores = {Kind.CORES: 1.0}
    for _ in range(tasks):
        number = random.randrange(categories)
        size, memory, time_s = models[number].draw(random)
        yield f"t{number + 1}", float(round(size * MB)), round(memory, 3), round(time_s, 3), cores


class MemoryModel:
    """The memory of one abstract task, in MB, and the size of its input."""

    def __init__(
        self, random: Random, scale: float, *, is_linear: bool, fixed_share: float = 0.5
    ) -> None:
        """At most `fixed_share` of the mean does not depend on the input."""
        self.is_linear = is_linear
        self.mean = random.uniform(1e3, 1e6) * scale
        self.deviation = random.uniform(0.03, 0.1) * self.mean
        self.slope = random.uniform(1, 10)
        variance = self.deviation**2
        error = random.uniform(0.1, 0.75) * variance
        self.error_deviation = math.sqrt(error)
        self.intercept = random.uniform(0, fixed_share) * self.mean
        self.size_mean = (self.mean - self.intercept) / self.slope
        self.size_deviation = math.sqrt(variance - error) / self.slope
        self.time_mean_s = random.uniform(10, 1000)

    def draw(self, random: Random) -> tuple[float, float, float]:
        size = max(random.gauss(self.size_mean, self.size_deviation), 0.0)
        if self.is_linear:
            memory = self.slope * size + self.intercept + random.gauss(0, self.error_deviation)
        else:
            memory = random.gauss(self.mean, self.deviation)
        return size, max(memory, 0.001), self.time_mean_s * random.uniform(0.5, 1.5)


def estimator(estimate: str) -> Callable[[float], float] | None:
    """From the largest peak of a category to what a user would ask for, in MB."""
    name, _, text = estimate.partition(":")
    if name == "max" and text:
        factor = _factor(text)
        if factor is not None:
            return lambda peak: round(peak * factor, 3)
    elif estimate == "none":
        return None
    elif estimate in ("power2", "power10"):
        base = float(estimate.removeprefix("power"))
        return lambda peak: nearest_power(base, peak / 1000) * 1000
    raise ValueError(f"estimate must be {ESTIMATES}, not {estimate!r}")


def _factor(text: str) -> float | None:
    try:
        factor = float(text)
    except ValueError:
        return None
    return factor if 0 < factor <= 1e6 else None


def nearest_power(base: float, value: float) -> float:
    """The power of `base` nearest to a positive value.

    >>> nearest_power(2, 1.2), nearest_power(10, 6.0), nearest_power(2, 0.3)
    (1.0, 10.0, 0.25)
    """
    below = base ** math.floor(math.log(value, base))
    return float(min((below, below * base), key=lambda power: abs(power - value)))
