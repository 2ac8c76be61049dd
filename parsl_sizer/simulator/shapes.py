"""The shapes of five well-known scientific workflows: which steps there are, and in what order.

The steps and their order are those of the workflows that G. Juve et al. describe
("Characterizing and Profiling Scientific Workflows", FGCS 2013). How many tasks each step has,
and how long one takes, are round figures in their proportions, not checked against the paper.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple


class Step(NamedTuple):
    """A task: what it is one of, how long such tasks take, and the places of its parents."""

    category: str
    mean_s: float
    parents: tuple[int, ...]


class _Steps(list[Step]):
    """Tasks in the making."""

    def add(self, category: str, mean_s: float, *parents: int) -> int:
        """One more task; its place."""
        self.append(Step(category, mean_s, parents))
        return len(self) - 1

    def each(self, category: str, mean_s: float, before: Sequence[int]) -> list[int]:
        """A task after each of these."""
        return [self.add(category, mean_s, parent) for parent in before]

    def roots(self, category: str, mean_s: float, count: int) -> list[int]:
        """So many tasks that wait for none."""
        return [self.add(category, mean_s) for _ in range(count)]


def montage(tasks: int) -> Sequence[Step]:
    """Mosaics of the sky: images are projected, compared with their neighbours, mended, added."""
    steps = _Steps()
    images = max(2, (tasks - 6) // 6)
    projected = steps.roots("mProjectPP", 1.7, images)
    overlaps = [
        (projected[at], projected[(at + apart) % images])
        for apart in (1, 2, 3, 4)
        for at in range(images)
    ][: max(1, tasks - 6 - 2 * images)]
    fitted = [steps.add("mDiffFit", 0.7, *dict.fromkeys(pair)) for pair in overlaps]
    plane = steps.add("mConcatFit", 143.0, *fitted)
    model = steps.add("mBgModel", 384.0, plane)
    mended = [steps.add("mBackground", 1.7, model, image) for image in projected]
    table = steps.add("mImgtbl", 2.8, *mended)
    added = steps.add("mAdd", 282.0, table)
    steps.add("mJPEG", 0.6, steps.add("mShrink", 66.0, added))
    return steps


def genome(tasks: int) -> Sequence[Step]:
    """Epigenomics: reads in lanes are split, cleaned, mapped and merged."""
    steps = _Steps()
    lanes = max(1, round(tasks / 140))
    chunks = max(lanes, (tasks - 2 * lanes - 3) // 4)
    merged = []
    for lane in range(lanes):
        split = steps.add("fastqSplit", 34.3)
        count = (chunks + lane) // lanes
        clean = steps.each("filterContams", 2.5, [split] * count)
        sanger = steps.each("sol2sanger", 0.5, clean)
        packed = steps.each("fastq2bfq", 1.4, sanger)
        merged.append(steps.add("mapMerge", 11.0, *steps.each("map", 201.9, packed)))
    everything = steps.add("mapMerge", 11.0, *merged)
    steps.add("pileup", 56.0, steps.add("maqIndex", 43.6, everything))
    return steps


def ligo(tasks: int) -> Sequence[Step]:
    """Inspiral: signals are matched with templates, found coincident, and matched again."""
    steps = _Steps()
    group = 9
    groups = max(1, round(tasks / (4 * group + 2)))
    for _ in range(groups):
        banks = steps.roots("TmpltBank", 18.1, group)
        coincident = steps.add("Thinca", 5.4, *steps.each("Inspiral", 460.0, banks))
        triggers = steps.each("TrigBank", 5.1, [coincident] * group)
        steps.add("Thinca", 5.4, *steps.each("Inspiral", 460.0, triggers))
    return steps


def cybershake(tasks: int) -> Sequence[Step]:
    """Earthquakes: strain tensors, the seismograms that follow from them, and their peaks."""
    steps = _Steps()
    sites = max(1, round(tasks / 200))
    tensors = steps.roots("ExtractSGT", 110.6, sites)
    count = max(1, (tasks - sites - 2) // 2)
    before = [tensors[number % sites] for number in range(count)]
    seismograms = steps.each("SeismogramSynthesis", 79.5, before)
    peaks = steps.each("PeakValCalcOkaya", 0.6, seismograms)
    steps.add("ZipSeis", 265.7, *seismograms)
    steps.add("ZipPSA", 195.8, *peaks)
    return steps


def sipht(tasks: int) -> Sequence[Step]:
    """Small RNAs: the same search, once for each of several genomes."""
    steps = _Steps()
    patsers = 18
    for _ in range(max(1, round(tasks / (patsers + 12)))):
        joined = steps.add("PatserConcate", 0.1, *steps.roots("Patser", 1.0, patsers))
        terms = [
            steps.add("Transterm", 32.4),
            steps.add("FindTerm", 594.9),
            steps.add("RNAMotif", 25.7),
            steps.add("Blast", 3311.1),
        ]
        found = steps.add("SRNA", 12.4, *terms)
        parsed = steps.add("FFNParse", 0.7, found)
        compared = [
            steps.add("BlastSynteny", 3.4, parsed),
            steps.add("BlastCandidate", 0.6, found),
            steps.add("BlastQRNA", 440.9, found),
            steps.add("BlastParalogues", 0.7, found),
        ]
        steps.add("SRNAAnnotate", 0.1, joined, *compared)
    return steps


SHAPES: dict[str, Callable[[int], Sequence[Step]]] = {
    "cybershake": cybershake,
    "genome": genome,
    "ligo": ligo,
    "montage": montage,
    "sipht": sipht,
}
