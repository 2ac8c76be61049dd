"""Run Parsl's own tests on an engine, plain and sized, and compare.

    python tests/parsl_suite/run.py [htex] [threads] [workqueue] [--whole]

The tests come with Parsl. No test may fail with SizedExecutor around the engine that
passes with the engine alone; what is left running afterwards counts as a test too. Tests
that need the internet are left out, and on Work Queue, where each task takes a second,
all but those in workqueue.txt, unless the whole is asked for.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import parsl
import psutil

HERE = Path(__file__).resolve().parent
SUITE = Path(parsl.__file__).parent / "tests"
ENGINES = ("htex", "threads", "workqueue")
RUN = "PARSL_SUITE_RUN"
"""In the environment of everything that a run starts."""
TEST_S = 120
"""A test that takes longer hangs."""
RUN_S = 3600
"""A run that takes longer hangs, and has no result."""
END_S = 20
"""Processes that are still there so long after a run are left behind."""
LEFT = "no process is left behind"
SEVERITY = ("passed", "skipped", "failed")


class Result(NamedTuple):
    """What came of a run: the outcome of every test by its name, and the time it took."""

    outcomes: dict[str, str]
    wall_s: float
    log: str

    def names(self, outcome: str) -> set[str]:
        """The tests that ended so."""
        return {name for name, ended in self.outcomes.items() if ended == outcome}


def main() -> int:
    """Run what the command line asks for; 1 if a test fails only when sized."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("engines", nargs="*", metavar="ENGINE", help=", ".join(ENGINES))
    parser.add_argument("--whole", action="store_true", help="all tests on Work Queue too")
    options = parser.parse_args()
    if unknown := set(options.engines) - set(ENGINES):
        parser.error(f"no engine is called {', '.join(sorted(unknown))}")
    print(f"Parsl {parsl.__version__}: its own tests, plain and sized\n", flush=True)
    complaints = [
        complaint
        for engine in options.engines or ENGINES
        for complaint in compared(engine, selection(engine, whole=options.whole))
    ]
    print("\n".join(complaints or ["No test fails only when sized."]))
    return 1 if complaints else 0


def selection(engine: str, *, whole: bool) -> list[str]:
    """The tests to run on an engine, as pytest takes them."""
    if engine != "workqueue" or whole:
        return [str(SUITE)]
    lines = (HERE / "workqueue.txt").read_text().splitlines()
    return [str(SUITE / line) for line in lines if line and not line.startswith("#")]


def compared(engine: str, tests: Sequence[str]) -> list[str]:
    """Run the tests both ways and say what came of it; a complaint for each that fails sized."""
    if engine == "workqueue" and not has_work_queue():
        print(f"{engine:<10} is not run: there is no Work Queue here\n")
        return []
    with ThreadPoolExecutor(2) as both:  # at once, since both wait most of the time
        plain, sized = both.map(lambda sized: run(engine, tests, sized=sized), (False, True))
    for how, result in (("plain", plain), ("sized", sized)):
        counts = Counter(result.outcomes.values())
        figures = "  ".join(f"{counts[outcome]:4d} {outcome}" for outcome in SEVERITY)
        print(f"{engine:<10} {how}  {figures}  {result.wall_s:6.1f} s", flush=True)
    # A test that a run did not come to has not passed.
    failing = plain.names("passed") - sized.names("passed")
    complaints = [f"{engine}: fails only when sized: {name}" for name in sorted(failing)]
    if plain.names("passed") <= {LEFT}:
        complaints = [f"{engine}: no test passes even with the plain engine"]
    if complaints:
        print(sized.log)
    for name in sorted(plain.names("failed") & sized.names("failed")):
        print(f"{'':10} fails either way: {name}")
    print(flush=True)
    return complaints


def has_work_queue() -> bool:
    """Whether Parsl finds Work Queue, and Work Queue its worker."""
    return find_spec("ndcctools") is not None and shutil.which("work_queue_worker") is not None


def run(engine: str, tests: Sequence[str], *, sized: bool) -> Result:
    """One run, in a folder of its own."""
    run_id = uuid.uuid4().hex
    programs = str(Path(sys.executable).parent)
    environment = {
        **os.environ,
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PARSL_SUITE_ENGINE": engine,
        "PARSL_SUITE_SIZED": str(int(sized)),
        RUN: run_id,
    }
    environment.pop("PARSL_SIZER", None)  # with which nothing would be sized
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", *tests, "-q", "-m", "not cleannet"]
        command += [f"--rootdir={SUITE}", "-c", str(HERE / "pytest.ini")]
        command += [f"--junitxml={report}", f"--timeout={TEST_S}"]
        command += ["--config", str(HERE / "config.py")]
        began = time.monotonic()
        log = Path(folder) / "log"
        with log.open("wb") as output, suppress(subprocess.TimeoutExpired):
            subprocess.run(
                command,
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=RUN_S,
                check=False,
            )
        wall_s = time.monotonic() - began
        outcomes = read(report) if report.exists() else {}
        left = ended(run_id)
        outcomes[LEFT] = "failed" if left else "passed"
        text = log.read_text(errors="replace")[-20_000:]
    return Result(outcomes, wall_s, "\n".join([text, *left]))


def read(report: Path) -> dict[str, str]:
    """The outcome of every test in a JUnit report; the worst, of a test that is there twice."""
    outcomes: dict[str, str] = {}
    for case in ElementTree.parse(report).iter("testcase"):
        name = f"{case.get('classname')}::{case.get('name')}"
        tags = {child.tag for child in case}
        outcome = "skipped" if "skipped" in tags else "passed"
        if tags & {"failure", "error"}:
            outcome = "failed"
        outcomes[name] = max(outcome, outcomes.get(name, "passed"), key=SEVERITY.index)
    return outcomes


def ended(run_id: str) -> list[str]:
    """Wait until everything that a run has started is gone; what had to be ended, if anything."""
    limit = time.monotonic() + END_S
    while (here := list(started(run_id))) and time.monotonic() < limit:
        time.sleep(0.2)
    left = []
    for process in here:
        with suppress(psutil.Error):
            left.append(f"Left behind: {process.pid} {' '.join(process.cmdline()):.200}")
            process.kill()
    return left


def started(run_id: str) -> Iterator[psutil.Process]:
    """The processes that a run has started and that are still here."""
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.environ().get(RUN) == run_id and process.status() != psutil.STATUS_ZOMBIE:
                yield process


if __name__ == "__main__":
    sys.exit(main())
