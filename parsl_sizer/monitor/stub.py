"""Loads the monitor where the package is not installed; travels as text with every callable."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import json
import sys
import threading
import types
import zlib

_LOADING = threading.Lock()


class Carried(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    """Finds the modules of one package in a table of their sources."""

    def __init__(self, package: str, sources: dict[str, str]) -> None:
        self.package = package
        self.sources = sources

    def find_spec(
        self, fullname: str, path: object = None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname == self.package:
            return importlib.machinery.ModuleSpec(fullname, self, is_package=True)
        package, _, name = fullname.rpartition(".")
        if package != self.package or name not in self.sources:
            return None
        return importlib.machinery.ModuleSpec(fullname, self, origin=f"<{fullname}>")

    def is_package(self, fullname: str) -> bool:
        return fullname == self.package

    def get_source(self, fullname: str) -> str:
        return "" if fullname == self.package else self.sources[fullname.rpartition(".")[2]]


def load(package: str, packed: bytes, module: str) -> types.ModuleType:
    """A module of a carried package, which is loaded once per process.

    The name of the package holds the hash of its sources: two versions live side by side.
    """
    with _LOADING:
        if package not in sys.modules:
            sources = json.loads(zlib.decompress(packed))
            sys.meta_path.append(Carried(package, sources))
    return importlib.import_module(f"{package}.{module}")
