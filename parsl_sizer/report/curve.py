"""The curve of cost over the first allocation: in letters, or as a picture."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path

from parsl_sizer.model import Kind, format_amount

from .plot import check
from .text import amount
from .whatif import CurvePoint

WIDTH, HEIGHT = 60, 8
BLOCKS, ASCII = " ▁▂▃▄▅▆▇█", " .:#"
HIGHEST = 4.0
"""What costs more than so many times the best is cut: its height would flatten the rest."""


def chart(points: Sequence[CurvePoint], first: float, *, is_ascii: bool = False) -> list[str]:
    """Lines of letters: columns as high as what is reserved, `first` marked below.

    >>> print("\\n".join(chart([(1e9, 1.2e15, 0.1), (8e9, 4.8e15, 0.0)], 1e9, is_ascii=True)[-3:]))
    :::#########################################################  233 GB·h
    ^
    1 GB                                                    8 GB
    """
    letters = ASCII if is_ascii else BLOCKS
    allocations = [point[0] for point in points]
    least, most = allocations[0], allocations[-1]
    steps = [least * (most / least) ** (column / (WIDTH - 1)) for column in range(WIDTH)]
    reserved = [_reserved(points, allocations, step) for step in steps]
    low = min(reserved)
    top = min(max(reserved), HIGHEST * low) or 1.0
    # From a little below the best one: what all have in common says nothing.
    base = max(0.0, low - 0.1 * (top - low)) if top > low else 0.0
    full = len(letters) - 1
    heights = [
        round((min(value, top) - base) / (top - base or 1.0) * HEIGHT * full) for value in reserved
    ]
    lines = [
        "".join(letters[min(max(height - row * full, 0), full)] for height in heights).rstrip()
        for row in range(HEIGHT - 1, -1, -1)
    ]
    lines[0] = f"{lines[0]:<{WIDTH}}  {amount(Kind.MEMORY, top)}"
    lines[-1] = f"{lines[-1]:<{WIDTH}}  {amount(Kind.MEMORY, base)}"
    mark = sum(step < first for step in steps)
    left, right = format_amount(Kind.MEMORY, least), format_amount(Kind.MEMORY, most)
    lines.append(" " * min(mark, WIDTH - 1) + ("^" if is_ascii else "▲"))
    lines.append(f"{left}{right:>{WIDTH - len(left)}}")
    return lines


def _reserved(points: Sequence[CurvePoint], allocations: Sequence[float], step: float) -> float:
    """What starting at `step` reserves: as much more as it is above the candidate below it."""
    index = max(bisect_right(allocations, step * (1 + 1e-9)) - 1, 0)
    allocation, reserved, _ = points[index]
    total_s = points[-1][1] / points[-1][0]
    return reserved + max(step - allocation, 0.0) * total_s


def draw(curves: dict[str, tuple[Sequence[CurvePoint], float]], path: Path) -> None:
    """A picture: for each category what first allocations reserve, and the advised one."""
    check()
    from matplotlib.figure import Figure

    columns = min(3, len(curves))
    rows = math.ceil(len(curves) / columns)
    figure = Figure(figsize=(5 * columns, 3.2 * rows), dpi=120, layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes, (category, (points, first)) in zip(grid, curves.items(), strict=False):
        axes.plot([p[0] / 1e9 for p in points], [p[1] / 3.6e12 for p in points], color="#4c78a8")
        axes.axvline(first / 1e9, color="#e45756", linestyle="--")
        axes.set_title(category, fontsize=10, parse_math=False)
        axes.set_xlabel("first allocation, GB")
        axes.set_ylabel("reserved, GB·h")
        axes.set_ylim(bottom=0)
        axes.spines[["top", "right"]].set_visible(False)
    for axes in grid[len(curves) :]:
        axes.set_axis_off()
    figure.savefig(path, format="png")
