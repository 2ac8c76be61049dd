"""``parsl-sizer strategies``: what there is, and where it comes from."""

from __future__ import annotations

from argparse import Namespace
from inspect import Parameter, signature

from parsl_sizer.strategies.catalog import VARIANTS, Entry, entries

from .output import console, print_json


def run(arguments: Namespace) -> None:
    listed = [_described(entry) for entry in entries().values()]
    if arguments.json:
        print_json({"strategies": listed})
    else:
        _show(listed)


def _described(entry: Entry) -> dict[str, object]:
    found: dict[str, object] = {"name": entry.name}
    try:
        found["summary"] = entry.summary
        parameters = list(signature(entry.build).parameters.values())[1:]
        found["options"] = {parameter.name: _shown(parameter) for parameter in parameters}
    except Exception as error:  # a plug-in may fail in any way when it is loaded
        found["summary"] = f"cannot be loaded: {error}"
        found["options"] = {}
    found["paper"] = entry.paper
    found["replay_only"] = entry.replay_only
    found["variants"] = [
        label for label, spec in VARIANTS.items() if spec.partition(":")[0] == entry.name
    ]
    return found


def _shown(parameter: Parameter) -> object:
    value = parameter.default
    return value if value is None or isinstance(value, (str, int, float)) else str(value)


def _show(listed: list[dict[str, object]]) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for label in ("strategy", "what it does", "paper", "options"):
        table.add_column(label, no_wrap=label == "strategy")
    for entry in listed:
        options = entry["options"]
        assert isinstance(options, dict)
        shown = ", ".join(f"{name}={value}" for name, value in options.items())
        cells = (entry["name"], entry["summary"], entry["paper"], shown)
        table.add_row(*map(str, cells))
    out = console()
    out.print(table)
    out.print("\nOptions, here with their defaults, are given as in percentile:p=50.")
