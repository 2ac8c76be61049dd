"""Reading traces of finished tasks."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from parsl_sizer.model import MB, Amounts, Kind, TaskInfo


@dataclass(frozen=True, slots=True)
class Row:
    """A finished task: what was known before it, and what it turned out to use."""

    line: int
    task: TaskInfo
    peak: Amounts
    time_s: float


def read(path: Path) -> Iterator[Row]:
    with path.open(newline="", encoding="utf-8") as file:
        for number, cells in enumerate(csv.DictReader(file), start=2):
            peak = {}
            if cells["cores"]:
                peak[Kind.CORES] = float(cells["cores"])
            if cells["memory_mb"]:
                peak[Kind.MEMORY] = float(cells["memory_mb"]) * MB
            if cells["disk_mb"]:
                peak[Kind.DISK] = float(cells["disk_mb"]) * MB
            features = {"input_size": float(cells["input_size"])} if cells["input_size"] else {}
            requested = (
                {Kind.MEMORY: float(cells["user_memory_mb"]) * MB}
                if cells["user_memory_mb"]
                else {}
            )
            task = TaskInfo(number, cells["category"], features=features, requested=requested)
            yield Row(number, task, peak, float(cells["time_s"] or 0))
