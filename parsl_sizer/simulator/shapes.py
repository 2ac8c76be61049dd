"""The shapes of five well-known scientific workflows: which tasks there are, and in what order.

Counts, order and times are those of the Pegasus Workflow Generator (S. Bharathi, G. Juve) as
C. Witt has extended it for "Feedback-Based Resource Allocation for Batch Scheduling of
Scientific Workflows" (HPCS 2019): github.com/carlwitt/WorkflowGenerator. Times are normal,
above a hundredth of their mean; where the generator divides by a rate, so is this. Of Genome the
sizes of files that only change its short steps are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import NamedTuple

LEAST = 0.01
"""No time is less than this share of its mean."""


class Time(NamedTuple):
    """How long tasks of a category take: normal, divided by a rate that is normal around 1."""

    mean_s: float
    deviation_s: float = 0.0
    rate_deviation: float = 0.0

    def draw(self, random: Random) -> float:
        """How long one of them takes."""
        rate = _positive(random, 1.0, self.rate_deviation)
        return _positive(random, self.mean_s, self.deviation_s) / rate


class Step(NamedTuple):
    """A task: what it is one of, how long such tasks take, and the places of its parents."""

    category: str
    time: Time
    parents: tuple[int, ...]


class _Steps(list[Step]):
    """Tasks in the making."""

    def __init__(self, times: dict[str, Time]) -> None:
        super().__init__()
        self._times = times

    def add(self, category: str, *parents: int) -> int:
        """One more task; its place."""
        self.append(Step(category, self._times[category], tuple(dict.fromkeys(parents))))
        return len(self) - 1

    def each(self, category: str, before: Iterable[int]) -> list[int]:
        """A task after each of these."""
        return [self.add(category, parent) for parent in before]

    def roots(self, category: str, count: int) -> list[int]:
        """So many tasks that wait for none."""
        return [self.add(category) for _ in range(count)]


def montage(tasks: int, random: Random) -> Sequence[Step]:
    """Mosaics of the sky: images are projected, compared in pairs, mended and added."""
    images = max(2, round((tasks - 6) / 6))
    pairs = max(1, min(tasks - 6 - 2 * images, images * images))
    degrees = images / 50
    steps = _Steps(
        {
            "mProjectPP": Time(13.59, 0.24),
            "mDiffFit": Time(10.59, 0.1),
            "mConcatFit": Time(0.08 * pairs),
            "mBgModel": Time(0.13 * pairs, 0.1 * pairs),
            "mBackground": Time(10.74, 0.17),
            "mImgtbl": Time(0.37 * images, 0.1 * images),
            "mAdd": Time(30.11 * degrees, 0.22 * degrees),
            "mShrink": Time(12.21 * degrees**0.5),
            "mJPEG": Time(3.2 * degrees**0.5, 0.5 * degrees**0.5),
        }
    )
    projected = steps.roots("mProjectPP", images)
    chosen = sorted(random.sample(range(images * images), pairs))
    fitted = [
        steps.add("mDiffFit", projected[pair // images], projected[pair % images])
        for pair in chosen
    ]
    model = steps.add("mBgModel", steps.add("mConcatFit", *fitted))
    mended = [steps.add("mBackground", model, image) for image in projected]
    added = steps.add("mAdd", steps.add("mImgtbl", *mended))
    steps.add("mJPEG", steps.add("mShrink", added))
    return steps


def genome(tasks: int, random: Random) -> Sequence[Step]:
    """Epigenomics: reads in lanes are split, cleaned, mapped and merged."""
    lanes, chunks = _lanes(tasks)
    reference = 4.295e9 * random.uniform(0.75, 1.25)
    lane, chunk = 351e6, 351e6 / chunks
    steps = _Steps(
        {
            "fastqSplit": Time(lane / 7.66e6, 0.42 * lane / 7.66e6, 0.31),
            "filterContams": Time(chunk / 8.47e6, 0, 0.59),
            "sol2sanger": Time(chunk / 2 / 15.07e6, 0, 0.24),
            "fastq2bfq": Time(chunk / 2 / 1.32 / 6.8e6, 0, 0.16),
            "map": Time(reference / 369552, 0, 0.309),
            "mapMerge": Time(lane / 11.2 / 0.92 / 2.267e6, 0, 0.145),
            "maqIndex": Time(lanes * lane / 11.2 / 64 / 17.68e6, 0, 0.27),
            "pileup": Time(reference / 881356, 0, 0.107),
        }
    )
    split = steps.roots("fastqSplit", lanes)
    clean = steps.each("filterContams", (at for at in split for _ in range(chunks)))
    packed = steps.each("fastq2bfq", steps.each("sol2sanger", clean))
    mapped = steps.each("map", packed)
    merged = [
        steps.add("mapMerge", *mapped[at * chunks : (at + 1) * chunks]) for at in range(lanes)
    ]
    everything = steps.add("mapMerge", *merged) if lanes > 1 else merged[0]
    steps.add("pileup", steps.add("maqIndex", everything))
    return steps


def _lanes(tasks: int) -> tuple[int, int]:
    """As many lanes as there can be of five chunks or more, with three tasks left at most."""
    best, least = (1, max(1, (tasks - 4) // 4)), tasks
    for lanes in range(tasks // 4, 1, -1):
        chunks = (tasks - 3 - 2 * lanes) // (4 * lanes)
        left = tasks - 3 - 2 * lanes - 4 * lanes * chunks
        if chunks > 0 and left < least:
            best, least = (lanes, chunks), left
        if chunks > 4 and left <= 3:
            return lanes, chunks
    return best


def ligo(tasks: int, random: Random) -> Sequence[Step]:
    """Inspiral: signals are matched with templates, found coincident, and matched again."""
    steps = _Steps(
        {
            "TmpltBank": Time(18.14, 0.42),
            "Inspiral": Time(460.21, 545),
            "Thinca": Time(5.37, 0.24),
            "TrigBank": Time(5.11, 0.32),
        }
    )
    groups = random.randint(1, max(1, tasks // 20))
    rest = max(2 * groups, (tasks - 2 * groups) // 2)
    above = max(1, round(rest * random.uniform(0.4875, 0.5)))
    below = rest - above
    firsts = steps.each("Inspiral", steps.roots("TmpltBank", above))
    sizes = _parts(below, groups, above, random)
    later = []
    for start, size in zip(_starts(sizes, above), sizes, strict=True):
        coincident = steps.add("Thinca", *firsts[start : start + size])
        later.append(steps.each("TrigBank", [coincident] * size))
    for banks in later:
        steps.add("Thinca", *steps.each("Inspiral", banks))
    return steps


def _parts(total: int, count: int, most: int, random: Random) -> list[int]:
    """So many random numbers with this sum, none below 1 nor above `most`, largest first."""
    cuts = sorted(random.sample(range(1, total), count - 1)) if count > 1 else []
    sizes = [end - start for start, end in zip([0, *cuts], [*cuts, total], strict=True)]
    while (largest := max(sizes)) > most and count > 1:
        sizes[sizes.index(min(sizes))] += largest - most
        sizes[sizes.index(largest)] = most
    return sorted((min(size, most) for size in sizes), reverse=True)


def _starts(sizes: Sequence[int], length: int) -> list[int]:
    """Where each part begins: one after another, the last ones so that they end in time."""
    starts, at = [], 0
    for size in sizes:
        at = min(at, length - size)
        starts.append(at)
        at += size
    return starts


def cybershake(tasks: int, random: Random) -> Sequence[Step]:
    """Earthquakes: strain tensors, the seismograms that follow from them, and their peaks."""
    usual = int((tasks - 2) * 0.0081)
    sites = max(2, random.randint(-(-usual // 2), max(1, usual * 3 // 2 - 1)))
    sites -= (tasks - sites) % 2 if sites > 2 else 0
    count = max(sites, (tasks - sites - 2) // 2)
    steps = _Steps(
        {
            "ExtractSGT": Time(137.45, 206),
            "SeismogramSynthesis": Time(43.4, 31),
            "PeakValCalcOkaya": Time(1.09, 1.93),
            "ZipSeis": Time(max(1.0, count * 24000 / 6 / 228180)),
            "ZipPSA": Time(max(1.0, count * 216 / 6 / 2782)),
        }
    )
    seismograms, peaks = [], []
    for site in range(sites):
        tensor = steps.add("ExtractSGT")
        for _ in range((count + site) // sites):
            seismograms.append(steps.add("SeismogramSynthesis", tensor))
            peaks.append(steps.add("PeakValCalcOkaya", seismograms[-1]))
    steps.add("ZipPSA", *peaks)
    steps.add("ZipSeis", *seismograms)
    return steps


def sipht(tasks: int, _: Random) -> Sequence[Step]:
    """Small RNAs: the same search, once for each of several genomes that are much alike."""
    steps = _Steps(
        {
            "Patser": Time(1.27, 0.33),
            "PatserConcate": Time(0.08 * 18, 0.1 * 18),
            "Findterm": Time(1349.47, 796),
            "RNAMotif": Time(36.42, 8.84),
            "Transterm": Time(55.78, 48),
            "Blast": Time(2350.58, 1016),
            "SRNA": Time(361.33, 342),
            "FFNParse": Time(1.64, 0.24),
            "BlastCandidate": Time(5.18, 0.99),
            "BlastQRNA": Time(1412.09, 98.5),
            "BlastSynteny": Time(33.0),
            "BlastParalogues": Time(4.99, 1.15),
            "SRNAAnnotate": Time(1.68, 0.96),
        }
    )
    genomes = max(1, round(tasks / 31))
    patsers = max(genomes, tasks - 13 * genomes)
    for number in range(genomes):
        joined = steps.add("PatserConcate", *steps.roots("Patser", (patsers + number) // genomes))
        searches = [steps.add(name) for name in ("Findterm", "RNAMotif", "Transterm", "Blast")]
        found = steps.add("SRNA", *searches)
        parsed = steps.add("FFNParse", found)
        compared = steps.each("BlastCandidate", [found]) + steps.each("BlastQRNA", [found])
        compared.append(steps.add("BlastSynteny", found, parsed))
        compared += steps.each("BlastParalogues", [found])
        steps.add("SRNAAnnotate", found, joined, *compared)
    return steps


def _positive(random: Random, mean: float, deviation: float) -> float:
    """A normal number, drawn again while it is less than `LEAST` of the mean."""
    drawn = random.gauss(mean, deviation) if deviation else mean
    while drawn < LEAST * mean:
        drawn = random.gauss(mean, deviation)
    return drawn


SHAPES: dict[str, Callable[[int, Random], Sequence[Step]]] = {
    "cybershake": cybershake,
    "genome": genome,
    "ligo": ligo,
    "montage": montage,
    "sipht": sipht,
}
