"""``parsl-sizer doctor``: what can be measured and limited here, and how the archive is."""

from __future__ import annotations

import sys
from argparse import Namespace
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

from parsl_sizer.archive.facts import Facts, facts
from parsl_sizer.archive.open import OFF, VARIABLE, location
from parsl_sizer.model import Kind, format_amount
from parsl_sizer.monitor import layers, node

from .archives import counted
from .output import console, print_json, tell

ENGINES = (
    ("HTEX", "parsl.executors.high_throughput", "comes with Parsl"),
    ("threads", "parsl.executors.threads", "comes with Parsl"),
    ("Work Queue", "ndcctools.work_queue", "needs ndcctools, from conda-forge"),
    ("TaskVine", "ndcctools.taskvine", "needs ndcctools, from conda-forge"),
)


def run(arguments: Namespace) -> None:
    where = location(arguments.archive)
    archive = None if where is None else facts(where)
    found: dict[str, object] = {
        "python": sys.version.split()[0],
        "parsl": _version("parsl"),
        "node": node.facts(),
        "isolation": layers.isolation(),
        "layers": [layer._asdict() for layer in layers.here()],
        "engines": [
            {"name": name, "is_there": _is_there(module), "why": why}
            for name, module, why in ENGINES
        ],
        "archive": archive and asdict(archive),
    }
    if arguments.json:
        print_json(found)
    else:
        _show(found)
        tell()
        for sentence in about_archive(archive):
            tell(sentence)


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ImportError:
        return False


def _show(found: dict[str, object]) -> None:
    from rich.table import Table

    out = console()
    facts = found["node"]
    assert isinstance(facts, dict)
    has = ", ".join(
        f"{kind.value} {format_amount(kind, facts[kind.value])}"
        for kind in Kind
        if kind.value in facts
    )
    out.print(f"Python {found['python']}, Parsl {found['parsl'] or 'is not installed'}.")
    out.print(f"This machine has: {has or 'nothing that can be read'}.")
    out.print(f"Tasks are run at best with isolation {found['isolation']!r}.\n")
    table = Table(box=None, pad_edge=False, header_style="bold")
    for label in ("layer", "active", "what it does", "why"):
        table.add_column(label, no_wrap=label in ("layer", "active"))
    for layer in layers.here():
        table.add_row(layer.name, "yes" if layer.is_active else "no", layer.does, layer.why)
    out.print(table)
    engines = Table(box=None, pad_edge=False, header_style="bold")
    for label in ("engine", "here", ""):
        engines.add_column(label, no_wrap=True)
    listed = found["engines"]
    assert isinstance(listed, list)
    for engine in listed:
        engines.add_row(engine["name"], "yes" if engine["is_there"] else "no", engine["why"])
    out.print()
    out.print(engines)


def about_archive(found: Facts | None) -> list[str]:
    """What to tell of the archive."""
    if found is None:
        return [f"There is no archive: {VARIABLE} is {OFF}, so runs are not recorded."]
    told = []
    if found.fault is not None:
        told.append(found.fault)
    elif not found.exists:
        told.append(f"The archive is to be {found.where}; no run has been recorded there yet.")
    else:
        held = f"{counted(found.attempts or 0, 'attempt')} of {counted(found.runs or 0, 'run')}"
        size = f" in {format_amount(Kind.MEMORY, found.bytes)}" if found.bytes is not None else ""
        told.append(
            f"The archive is {found.where}: {held}{size}, version {found.version} of "
            f"its tables (the newest is {found.newest_version})."
        )
    if found.on_network:
        told.append(
            "It is on a network file system: each run writes to a file of its own beside it, "
            "which is merged into it when the run ends."
        )
    for paths, what in (
        (found.waiting, "waits to be merged into it, by the next run that ends or by import"),
        (found.bad, "has lines that were not taken: they cannot be read, or are refused"),
        (found.damaged, "is an archive that was found damaged, and set aside"),
    ):
        told += [f"{path} {what}." for path in paths]
    return told
