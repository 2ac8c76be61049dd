"""Snakemake's benchmark files: a row for every time that a job was run.

All that a benchmark file tells by itself is what was measured; with
``--benchmark-extended`` also the rule, its resources and the sizes of its inputs. There
max_rss is in units of 2**20 bytes, and mem_mb, which users write, in units of 10**6. Snakemake
looks at a job's memory every half a second and later every 30 seconds, so a peak is a
lower bound; 0 is that of a job that was over before the first look, and unknown here.

The category is the rule. Where the file does not name it, it is taken from the path: as
in the manual's ``benchmarks/RULE/{sample}.tsv`` the folder below ``benchmarks``, and for
``benchmarks/RULE.{sample}.tsv``, or without such a folder, the file's name up to its first
dot. A task is called by its line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from parsl_sizer.archive.base import SAMPLED, Entry, Run
from parsl_sizer.model import MB, TaskInfo

from .base import Notes, amount
from .cells import (
    finished,
    first_line,
    identity,
    kept,
    known,
    labelled,
    positive,
    records,
)

NAME = "snakemake"
MIB = 2.0**20
NEEDED = ("s", "h:m:s")
FOLDERS = frozenset({"benchmark", "benchmarks"})
LABELS = ("jobid", "wildcards")
# Without escapes, so that no text takes more than one look at each character.
_PAIR = re.compile(r"'([^'\\]*)': ([0-9][0-9.e+-]*)(?=[,}])")


def recognises(path: Path, head: bytes) -> bool:
    """Whether the first line begins as that of a benchmark file."""
    return tuple(first_line(head).split("\t")[:2]) == NEEDED


def read(path: Path, notes: Notes) -> Iterator[Entry]:
    """Every run of the job, one by one."""
    run = Run(identity(NAME, path), source=NAME)
    called = _called(path)
    for line, cells in records(path, "\t", NEEDED, notes):
        resources = dict(_PAIR.findall(cells.get("resources", "")))
        files = _sizes(cells.get("input_size_mb", ""))
        memory = amount(resources.get("mem_mb"), MB) or amount(resources.get("mem_mib"), MIB)
        requested = known(
            cores=positive(amount(resources.get("_cores") or cells.get("threads"))),
            memory=positive(memory),
            disk=positive(amount(resources.get("disk_mb"), MB)),
        )
        task = TaskInfo(
            line,
            kept(cells.get("rule_name") or called),
            features={"input_size": sum(files.values())} if files else {},
            requested=requested,
            labels=labelled(cells, LABELS),
            inputs=tuple(files),
        )
        entry = finished(
            run,
            task,
            notes,
            known(memory=positive(amount(cells.get("max_rss"), MIB))),
            amount(cells.get("s")),
            positive(amount(cells.get("cpu_time"))),
            layers=(SAMPLED,),
        )
        if entry:
            yield entry


def _called(path: Path) -> str:
    """The category as the path tells it.

    >>> _called(Path("run/benchmarks/bwa_map/A.tsv")), _called(Path("benchmarks/sort.A.tsv"))
    ('bwa_map', 'sort')
    """
    folders = path.parts[:-1]
    below = [at + 1 for at, folder in enumerate(folders) if folder.lower() in FOLDERS]
    if below and below[-1] < len(folders):
        return folders[below[-1]]
    return path.name.split(".")[0] or path.name


def _sizes(text: str) -> dict[str, float]:
    """The bytes of every input file; nothing if one of them cannot be read.

    >>> _sizes("{'a.bin': 2.5, 'b.bin': 1e-05}")
    {'a.bin': 2621440.0, 'b.bin': 10.48576}
    """
    sizes = {name: amount(number, MIB) for name, number in _PAIR.findall(text)}
    read = {name: number for name, number in sizes.items() if number is not None}
    return read if len(read) == text.count(": ") else {}
