"""``parsl-sizer profile``: what nodes can do, measured, and which of them are alike."""

from __future__ import annotations

import logging
import time
from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from rich.table import Table
from rich.text import Text

from parsl_sizer.archive.base import ArchiveError
from parsl_sizer.archive.open import Where, location, open_archive, shown
from parsl_sizer.model import NodeProfile, SizerError, printable
from parsl_sizer.profiling import FEATURES, STEPS, profile_here
from parsl_sizer.report.fitting import FirstThatFits
from parsl_sizer.report.text import UNKNOWN

from .alike import Alike, alike
from .archives import counted, lasting, opened, when
from .output import console, print_json, progress, say, tell

BYTES = ("B", "KB", "MB", "GB", "TB", "PB")
UNITS = {
    "cpu_single": "events/s",
    "cpu_multi": "events/s",
    "memory_bandwidth": "bytes/s",
    "io_write": "bytes/s",
    "io_read": "bytes/s",
    "io_random_read": "operations/s",
    "io_random_write": "operations/s",
    "cores": "cores",
    "memory": "bytes",
    "disk": "bytes",
    "gpus": "gpus",
    "cpu_mhz": "MHz",
    "cpu_cache": "bytes",
    "gpu_memory": "bytes",
}
"""What features are measured in; a flag is there or not."""
TITLES = {
    "cores": "cores",
    "memory": "memory",
    "cpu_single": "1 core",
    "cpu_multi": "all cores",
    "memory_bandwidth": "memory/s",
    "io_read": "read/s",
    "io_write": "write/s",
    "io_random_read": "reads/s",
    "io_random_write": "writes/s",
}
"""The columns of a table of nodes."""
IDLE, BUSY = "cpu_idle", 0.8
"""A machine with less of its processors idle has been measured beside something else."""


def run(arguments: Namespace) -> None:
    if arguments.forget:
        _forget(arguments)
    elif arguments.list:
        with opened(arguments) as found:
            profiles = found.archive.profiles()
        _tell(profiles, found.name, arguments)
    elif arguments.config is not None:
        _profile_config(arguments)
    else:
        _profile_here(arguments)


def _profile_here(arguments: Namespace) -> None:
    if arguments.folder is not None and not Path(arguments.folder).is_dir():
        raise SizerError(f"There is no folder {arguments.folder} to measure a disk in.")
    began = time.monotonic()
    with progress("Measuring", STEPS) as advance:
        profile = profile_here(
            arguments.seconds,
            extra=arguments.extra,
            use_tools=not arguments.built_in,
            folder=arguments.folder,
            tick=lambda feature: advance(1),
        )
    took_s = time.monotonic() - began
    kept = _keep([profile], location(arguments.archive), arguments)
    if arguments.json:
        _print([profile], kept, None)
        return
    out = console()
    out.print(f"{profile.host}, measured in {lasting(took_s)}:\n")
    out.print(_features_table(profile))
    _tell_kept([profile], kept)
    _tell_busy([profile])


def _profile_config(arguments: Namespace) -> None:
    from parsl_sizer.executor.profiles import profile_config

    with _remarks(), progress("Profiling nodes", arguments.nodes) as advance:
        found = profile_config(
            Path(arguments.config),
            seconds=arguments.seconds,
            extra=arguments.extra,
            use_tools=not arguments.built_in,
            folder=arguments.folder,
            nodes=arguments.nodes,
            wait_s=arguments.wait,
            archive=False,
            progress=lambda profile: advance(1),
        )
    profiles = [profile for nodes in found.values() for profile in nodes.values()]
    kept = _keep(profiles, location(arguments.archive), arguments)
    made = alike(profiles, arguments.by)
    if arguments.json:
        _print(profiles, kept, made)
    else:
        console().print(nodes_table(profiles, made))
        _tell_kept(profiles, kept)
        _tell_busy(profiles)
        _tell_left_out(made)


def _keep(
    profiles: Sequence[NodeProfile], where: Where | None, arguments: Namespace
) -> Where | None:
    """Where they are kept; what was measured is shown even if they cannot be."""
    if where is None or arguments.dry_run:
        return None
    try:
        with closing(open_archive(where, warn=say)) as archive:
            archive.keep_profiles(profiles)
    except ArchiveError as error:
        say(f"What was measured is not kept. {error}")
        return None
    return where


def _tell(profiles: Sequence[NodeProfile], name: str, arguments: Namespace) -> None:
    made = alike(profiles, arguments.by)
    if arguments.json:
        print_json({"archive": name, **_json(profiles, made)})
    elif profiles:
        console().print(nodes_table(profiles, made))
        _tell_left_out(made)
    else:
        say(f"There is no profile in {name} yet; parsl-sizer profile makes one.")


def _forget(arguments: Namespace) -> None:
    with opened(arguments, read_only=False) as found:
        known = [profile.name for profile in found.archive.profiles()]
        for name in arguments.forget:
            if name not in known:
                there = ", ".join(known) or "none"
                raise SizerError(f"There is no profile of {name!r} in {found.name}; of {there}.")
        count = found.archive.forget_profiles(arguments.forget)
    if arguments.json:
        print_json({"archive": found.name, "forgotten": count})
    else:
        tell(f"Forgot {counted(count, 'node')}.")


def _print(profiles: Sequence[NodeProfile], kept: Where | None, made: Alike | None) -> None:
    print_json({"archive": kept and shown(kept), **_json(profiles, made)})


def _json(profiles: Sequence[NodeProfile], made: Alike | None) -> dict[str, object]:
    made = made or alike(profiles, None)
    return {
        "nodes": [
            {
                "node": profile.name,
                "host": profile.host,
                "executor": profile.executor,
                "measured_at": profile.measured_at or None,
                "features": dict(profile.features),
                "methods": dict(profile.methods),
                "group": made.group_of(profile.name),
                "labels": made.labels_of(profile.name),
            }
            for profile in profiles
        ],
        "grouped_by": list(made.features),
    }


def nodes_table(profiles: Sequence[NodeProfile], made: Alike) -> FirstThatFits:
    """One row per node, those of one group together, the weakest first."""
    ordered = sorted(profiles, key=lambda profile: (made.place_of(profile.name), profile.name))
    most = [*TITLES]
    return FirstThatFits(
        lambda: _table(ordered, made, ("labels", "measured"), most),
        lambda: _table(ordered, made, ("labels",), most),
        lambda: _table(ordered, made, ("labels",), most[:3]),
    )


def _table(
    profiles: Sequence[NodeProfile], made: Alike, about: Sequence[str], features: Sequence[str]
) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("group", "node", *about):
        table.add_column(title, overflow="fold")
    for feature in features:
        table.add_column(TITLES[feature], justify="right")
    for profile in profiles:
        labels = made.labels_of(profile.name)
        told = {
            "labels": " ".join(f"{name} {label}" for name, label in labels.items()) or UNKNOWN,
            "measured": when(profile.measured_at, "%Y-%m-%d %H:%M"),
        }
        cells = [figure(name, profile.features.get(name), unit="") for name in features]
        group = made.group_of(profile.name)
        table.add_row(
            group, Text(printable(profile.name, keep="")), *(told[name] for name in about), *cells
        )
    return table


def _features_table(profile: NodeProfile) -> Table:
    """What was measured first, then what was looked up, and how."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("feature", no_wrap=True)
    table.add_column("", justify="right", no_wrap=True)
    table.add_column("how")
    rest = [name for name in profile.features if name not in FEATURES]
    for name in (*FEATURES, *rest):
        amount = profile.features.get(name)
        table.add_row(name, figure(name, amount), Text(profile.methods.get(name, "looked up")))
    return table


def figure(name: str, amount: float | None, unit: str | None = None) -> str:
    """A feature as a person writes it.

    >>> figure("memory_bandwidth", 1.93e10), figure("cpu_single", 1532.18), figure("io_read", None)
    ('19.3 GB/s', '1,532 events/s', '–')
    """
    if amount is None:
        return UNKNOWN
    if name == IDLE:
        return f"{amount:.0%}".replace("%", " %")
    of = UNITS.get(name, "")
    if of.startswith("bytes"):
        for prefix in BYTES:
            if amount < 999.5 or prefix == BYTES[-1]:
                break
            amount /= 1000
        return f"{amount:.3g} {prefix}{of.removeprefix('bytes') if unit is None else unit}"
    number = f"{amount:,.0f}" if amount >= 100 else f"{amount:.3g}"
    return f"{number} {of if unit is None else unit}".rstrip()


def _tell_kept(profiles: Sequence[NodeProfile], kept: Where | None) -> None:
    if kept is not None:
        tell(f"\nKept {counted(len(profiles), 'profile')} in {shown(kept)}.")


def _tell_busy(profiles: Sequence[NodeProfile]) -> None:
    for profile in profiles:
        idle = profile.features.get(IDLE, 1.0)
        if idle < BUSY:
            share = figure(IDLE, idle)
            say(f"{profile.name} was busy: its processors were {share} idle before measuring.")


def _tell_left_out(made: Alike) -> None:
    for feature, why in made.left_out.items():
        say(f"Nodes are not compared by {feature}: {why}.")


@contextmanager
def _remarks() -> Iterator[None]:
    logger, remarks = logging.getLogger("parsl_sizer"), _Remarks()
    logger.addHandler(remarks)
    try:
        yield
    finally:
        logger.removeHandler(remarks)


class _Remarks(logging.Handler):
    """What the library warns of, as this program's remarks."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)

    def emit(self, record: logging.LogRecord) -> None:
        say(record.getMessage())
