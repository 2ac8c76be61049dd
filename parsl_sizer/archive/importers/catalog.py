"""The importers by name, and which one a file is for."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import cast

from .base import HEAD, Importer, ImportFailed

MODULES = {
    "nextflow": "nextflow",
    "snakemake": "snakemake",
    "wfcommons": "wfcommons",
    "sacct": "sacct",
    "trace_csv": "trace_csv",
    "parsl": "parsl_monitoring",
    "cctools": "cctools_log",
    "resource_monitor": "resource_monitor",
    "lines": "lines",
}
"""What a format is called, and the module here that reads it."""


def names() -> tuple[str, ...]:
    """The formats that can be imported."""
    return tuple(name for name, module in MODULES.items() if find_spec(f"{__package__}.{module}"))


def importer(name: str) -> Importer:
    """The one for a format, loaded when it is asked for."""
    if name not in names():
        raise ImportFailed(f"No format is called {name!r}; there are {', '.join(names())}.")
    return cast(Importer, import_module(f"{__package__}.{MODULES[name]}"))


def recognise(path: Path) -> Importer:
    """The importer for a file, by how it begins; `ImportFailed` if there is none."""
    try:
        with path.open("rb") as file:
            head = file.read(HEAD)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ImportFailed(f"{path} cannot be read: {reason}.") from None
    if not head:
        raise ImportFailed(f"{path} is empty.")
    for name in names():
        found = importer(name)
        if found.recognises(path, head):
            return found
    raise ImportFailed(f"{path} is none of the formats that can be imported: {', '.join(names())}.")
