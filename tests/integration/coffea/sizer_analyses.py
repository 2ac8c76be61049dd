"""Analyses to be run with Coffea. Workers import this."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import awkward as ak
import hist
import numpy as np
import uproot
from coffea import processor
from coffea.nanoevents import BaseSchema
from sizer_tasks import linger, pid_of

EVENTS = 6000
"""In each file."""
FILES = 2
"""Of each dataset."""
TREE = "Events"
KB = {"light": 4, "heavy": 40}
"""What the processor holds of each event, by dataset."""


def fileset(folder: Path, kb: Mapping[str, float] = KB) -> dict[str, Any]:
    """ROOT files of two datasets, as a Runner takes them."""
    folder.mkdir(exist_ok=True)
    random = np.random.default_rng(7)
    found: dict[str, Any] = {}
    for dataset, kilobytes in kb.items():
        files = [folder / f"{dataset}{number}.root" for number in range(FILES)]
        for path in files:
            # Weights that can be summed in any order.
            weights = random.integers(1, 4, EVENTS).astype("f8")
            with uproot.recreate(path) as file:
                file[TREE] = {"pt": random.exponential(40, EVENTS), "weight": weights}
        found[dataset] = {"files": list(map(str, files)), "metadata": {"kb": kilobytes}}
    return found


class Spectra(processor.ProcessorABC):
    """A weighted spectrum of each dataset, with memory held for each event."""

    def process(self, events: Any) -> dict[str, Any]:
        dataset = events.metadata["dataset"]
        self.before(events)
        held = np.ones(int(len(events) * events.metadata["kb"] * 125))
        time.sleep(0.3)
        spectrum = (
            hist.Hist.new.StrCat([], growth=True, name="dataset")
            .Reg(50, 0, 200, name="pt")
            .Weight()
        )
        spectrum.fill(dataset=dataset, pt=ak.to_numpy(events.pt), weight=ak.to_numpy(events.weight))
        self.after(events)
        return {"spectrum": spectrum, "events": {dataset: int(held.size and len(events))}}

    def before(self, events: Any) -> None:
        """Something that goes wrong."""

    def after(self, events: Any) -> None:
        """Something that goes wrong with the memory held."""

    def postprocess(self, accumulator: dict[str, Any]) -> dict[str, Any]:
        return accumulator


class Troubled(Spectra):
    """Has trouble with the first events of the first heavy file, so many times."""

    def __init__(self, notes: str, times: int = 1) -> None:
        self.notes = notes
        self.times = times

    def is_time(self, events: Any) -> bool:
        metadata = events.metadata
        if not metadata["filename"].endswith("heavy0.root") or metadata["entrystart"]:
            return False
        with Path(self.notes).open("a") as notes:
            notes.write("x")
        return len(Path(self.notes).read_text()) <= self.times


class Refused(Troubled):
    """NumPy finds no memory."""

    def after(self, events: Any) -> None:
        if self.is_time(events):
            np.empty(1 << 50, dtype="u1")


class Killer(Troubled):
    """Its worker is killed, or its own process."""

    def __init__(self, notes: str, whom: str) -> None:
        super().__init__(notes)
        self.whom = whom

    def before(self, events: Any) -> None:
        if self.is_time(events):
            os.kill(pid_of(self.whom), signal.SIGKILL)
            linger()


class Wrong(Troubled):
    """Raises."""

    def before(self, events: Any) -> None:
        if self.is_time(events):
            raise ValueError("this event is not to be looked at")


def analysed(files: Mapping[str, Any], how: Any, what: Any = None, **options: Any) -> Any:
    """What a Runner makes of the files with an executor of Coffea's."""
    runner = processor.Runner(
        executor=how, schema=BaseSchema, metadata_cache={}, **{"chunksize": 3000, **options}
    )
    return runner(files, what or Spectra(), treename=TREE)


def is_same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two results are equal, to the last bin."""
    assert one["events"] == other["events"]
    spectra = one["spectrum"], other["spectrum"]
    assert sorted(spectra[0].axes["dataset"]) == sorted(spectra[1].axes["dataset"])
    for dataset in spectra[0].axes["dataset"]:
        views = [spectrum[dataset, :].view(flow=True) for spectrum in spectra]
        for field in ("value", "variance"):
            np.testing.assert_array_equal(views[0][field], views[1][field])
            assert views[0][field].sum() > 0
    return True
