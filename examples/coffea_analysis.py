"""An analysis with Coffea, on ROOT files that it writes itself: plain, then sized.

    pip install '.[coffea]'
    python examples/coffea_analysis.py

Events of two datasets are selected and filled into histograms, in chunks. Those of `ttbar` have
many more jets, and all pairs of these are looked at, so a chunk takes far more memory than one
of `dimuon`. On a node as small as is said here whole files of `ttbar` do not fit: sized, they
are split. The histograms are the same.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import awkward as ak
import hist
import numpy as np
import parsl
import uproot
from coffea import processor
from coffea.nanoevents import BaseSchema
from parsl.config import Config
from parsl.executors import HighThroughputExecutor
from parsl.providers import LocalProvider

from parsl_sizer import SizedExecutor

NODE = "cores=2,memory=500MB"
JETS = {"dimuon": 2, "ttbar": 60}
"""In each event, about."""


class Pairs(processor.ProcessorABC):  # type: ignore[misc]
    """The momenta of jets, and the masses of all their pairs."""

    def process(self, events: Any) -> dict[str, Any]:
        dataset = events.metadata["dataset"]
        jets = ak.zip({"pt": events.pt, "eta": events.eta, "phi": events.phi})
        first, second = ak.unzip(ak.combinations(jets, 2))
        angles = np.cosh(first.eta - second.eta) - np.cos(first.phi - second.phi)
        masses = np.sqrt(2 * first.pt * second.pt * angles)
        momenta = hist.Hist.new.Reg(40, 0, 400, name="pt").Int64()
        pairs = hist.Hist.new.Reg(60, 0, 600, name="mass").Int64()
        momenta.fill(pt=ak.to_numpy(ak.flatten(jets.pt)))
        pairs.fill(mass=ak.to_numpy(ak.flatten(masses)))
        return {dataset: {"events": len(events), "pt": momenta, "mass": pairs}}

    def postprocess(self, accumulator: dict[str, Any]) -> dict[str, Any]:
        return accumulator


def write_files(folder: Path, files: int, events: int) -> dict[str, list[str]]:
    """So many files of each dataset, as a Runner takes them."""
    random = np.random.default_rng(1)
    fileset: dict[str, list[str]] = {}
    for dataset, jets in JETS.items():
        for number in range(files):
            path = folder / f"{dataset}_{number}.root"
            counts = random.poisson(jets, events)
            total = int(counts.sum())
            values = {
                "pt": 20 + random.exponential(40, total),
                "eta": random.normal(0, 1.5, total),
                "phi": random.uniform(-np.pi, np.pi, total),
            }
            with uproot.recreate(path) as file:
                file["Events"] = {
                    name: ak.unflatten(column, counts) for name, column in values.items()
                }
            fileset.setdefault(dataset, []).append(str(path))
    return fileset


def engine() -> HighThroughputExecutor:
    """Two workers on this machine."""
    return HighThroughputExecutor(
        label="coffea",
        address="127.0.0.1",
        max_workers_per_node=2,
        cores_per_worker=0.5,
        provider=LocalProvider(init_blocks=1, max_blocks=1),
    )


def analyse(fileset: dict[str, list[str]], executor: Any, chunksize: int) -> dict[str, Any]:
    """The histograms of all files, and how long they took."""
    began = time.monotonic()
    with parsl.load(Config(executors=[executor], run_dir="runinfo")):
        runner = processor.Runner(
            executor=processor.ParslExecutor(status=False, retries=0),
            schema=BaseSchema,
            chunksize=chunksize,
            metadata_cache={},
        )
        found: dict[str, Any] = runner(fileset, Pairs(), treename="Events")
    print(f"  {time.monotonic() - began:.0f} s")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description="An analysis with Coffea, plain and sized.")
    parser.add_argument("--files", type=int, default=3, help="files of each dataset")
    parser.add_argument("--events", type=int, default=8_000, help="events in each file")
    arguments = parser.parse_args()
    # Parsl's own programs are beside this Python, and not everybody activates an environment.
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    with tempfile.TemporaryDirectory() as folder:
        fileset = write_files(Path(folder), arguments.files, arguments.events)
        print("Plain, with nothing that limits what a chunk takes:")
        plain = analyse(fileset, engine(), arguments.events)
        print(f"Sized, on a node with {NODE}:")
        sized = analyse(
            fileset, SizedExecutor(engine(), node=NODE, on_exhausted="split"), arguments.events
        )
    for dataset in JETS:
        one, other = plain[dataset], sized[dataset]
        if any(one[name] != other[name] for name in ("events", "pt", "mass")):
            raise SystemExit(f"The histograms of {dataset} differ.")
        pairs = int(other["mass"].sum(flow=True))
        print(f"{dataset}: {other['events']:,} events and {pairs:,} pairs, the same in both.")


if __name__ == "__main__":
    main()
