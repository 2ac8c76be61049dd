"""A picture of a comparison. Needs matplotlib: the extra ``plots``."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from parsl_sizer.model import SizerError, is_bytes

from .compare import Standing
from .text import number, shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CUT = 4.0
"""Bars longer than so many times the best are cut: a whole machine per task would leave
nothing to be seen of the others."""

FRAGMENTATION, FAILED, RETRIES = "#4c78a8", "#e45756", "#9d9d9d"


class PlotsMissing(SizerError):
    """matplotlib is not installed."""

    def __init__(self) -> None:
        super().__init__(
            "A picture needs matplotlib, which is not installed; "
            'install it with pip install "parsl_sizer[plots]".'
        )


def check() -> None:
    """Raise `PlotsMissing`, before any long work, if no picture can be made."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError:
        raise PlotsMissing from None


def bars(standings: Sequence[Standing], title: str, path: Path) -> None:
    """Waste per strategy, split into its two parts, beside the retries per task."""
    check()
    from matplotlib.figure import Figure

    height = 1.6 + 0.3 * len(standings)
    figure = Figure(figsize=(11, height), dpi=120, layout="constrained")
    waste, retries = figure.subplots(1, 2, sharey=True, width_ratios=(3, 1))
    figure.suptitle(title, fontsize=10, parse_math=False)
    places = range(len(standings))
    _waste_bars(waste, standings)
    per_task = [standing.retries_per_task or 0.0 for standing in standings]
    retries.barh(places, per_task, color=RETRIES)
    for place, value in zip(places, per_task, strict=True):
        retries.text(value, place, f" {value:.2f}", va="center", fontsize=8)
    retries.set_xlabel("retries per task")
    retries.margins(x=0.25)
    for axes in (waste, retries):
        axes.spines[["top", "right"]].set_visible(False)
    waste.set_yticks(places, [_label(standing) for standing in standings], parse_math=False)
    waste.invert_yaxis()
    with warnings.catch_warnings():
        # A name in a script that the font lacks is drawn as boxes; that is no reason to fail.
        warnings.simplefilter("ignore", UserWarning)
        figure.savefig(path, format="png")


def _label(standing: Standing) -> str:
    name = shortened(standing.result.name)
    return f"{name} (best)" if standing.is_best else name


def _waste_bars(axes: Axes, standings: Sequence[Standing]) -> None:
    kind = standings[0].kind
    unit, unit_name = (3.6e12, "GB·h") if is_bytes(kind) else (3600.0, "core·h")
    fragmentation = [standing.tally.fragmentation / unit for standing in standings]
    failed = [standing.tally.failed / unit for standing in standings]
    totals = [first + second for first, second in zip(fragmentation, failed, strict=True)]
    best = next((t for t, s in zip(totals, standings, strict=True) if s.is_best), 0.0)
    longest = min(max(totals), CUT * best) if best else max(totals)
    places = range(len(standings))
    shown = [min(part, longest) for part in fragmentation]
    rest = [min(total, longest) - part for total, part in zip(totals, shown, strict=True)]
    axes.barh(places, shown, color=FRAGMENTATION, label="internal fragmentation")
    axes.barh(places, rest, left=shown, color=FAILED, label="failed attempts")
    for place, (total, standing) in enumerate(zip(totals, standings, strict=True)):
        relative = standing.relative_waste
        text = " ▸ " if total > longest else " "
        text += number(total) + (f" ({relative:.2f}×)" if relative is not None else "")
        axes.text(min(total, longest), place, text, va="center", fontsize=8)
    axes.set_xlim(0, 1.2 * longest or 1.0)
    axes.set_xlabel(f"{kind.value} waste, {unit_name}")
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, frameon=False, fontsize=9)
