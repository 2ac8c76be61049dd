"""Charts as inline SVG that stretch with the page, their text does not: no script, no font.

What is across is in percent of the width, what is down in pixels. A curve is drawn in a
picture within the picture that is stretched to it. Each chart has a title and a
description in words for those who cannot see it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape
from typing import NamedTuple

PLOT, AXIS, ROW = 150, 24, 16
"""The heights of what is drawn, of the axis below it, and of a row of labels above it."""
TOP = 14
LETTER_WIDTH = 2.0
"""What a letter of a label takes of the width, in percent, on the narrowest screen."""
SHIFTS = {"start": 4, "end": -4, "middle": 0}
"""How far a label is from its line, by where it is anchored."""
ACROSS, DOWN = 1000, 100
"""The units of a stretched curve."""


class Mark(NamedTuple):
    """A vertical line at a value, with its label; `style` is a class of the style sheet."""

    value: float
    label: str
    style: str


class Bar(NamedTuple):
    """A bar from `least` to `most`; `label` says in words what it is."""

    least: float
    most: float
    height: float
    label: str


class Tick(NamedTuple):
    """A place on an axis and what is written there."""

    value: float
    label: str


class Curve(NamedTuple):
    """Points from left to right. Its area is filled, or else it is a line."""

    points: Sequence[tuple[float, float]]
    style: str
    is_filled: bool = False
    is_stepped: bool = False


class Scale(NamedTuple):
    """Where values are on an axis, from 0 to 1."""

    least: float
    most: float
    is_log: bool = False

    def at(self, value: float) -> float:
        """The place of a value.

        >>> Scale(1.0, 100.0, is_log=True).at(10.0)
        0.5
        """
        least, most = self.least, self.most
        if self.is_log:
            value, least, most = (math.log(max(number, 1e-300)) for number in (value, least, most))
        return min(max((value - least) / (most - least), 0.0), 1.0) if most > least else 0.5


class Words(NamedTuple):
    """What a chart says to those who cannot see it; `name` is its own within the page."""

    name: str
    title: str
    description: str


def log_scale(values: Sequence[float]) -> Scale:
    """A scale on which all amounts of bytes have their place, with some room at both ends.

    What is less than one has its place with one: somebody may have reported next to nothing.
    """
    known = [value for value in values if value >= 1.0]
    least, most = min(known, default=1.0), max(known, default=1.0)
    room = max((most / least) ** 0.04, 1.02)
    return Scale(least / room, most * room, is_log=True)


def round_numbers(scale: Scale, most: int = 5) -> list[float]:
    """Up to so many round numbers on a scale.

    >>> round_numbers(Scale(0.0, 70.0)), round_numbers(Scale(3.0, 2500.0, is_log=True))
    ([0.0, 20.0, 40.0, 60.0], [10.0, 100.0, 1000.0])
    """
    if not scale.is_log:
        step = _round_step((scale.most - scale.least) / (most - 1))
        first, last = math.ceil(scale.least / step), math.floor(scale.most / step + 1e-9)
        return [number * step for number in range(first, last + 1)]
    exponents = range(math.floor(math.log10(scale.least)), math.ceil(math.log10(scale.most)) + 1)
    for digits in ((1, 2, 5), (1, 3), (1,)):
        found = [digit * 10.0**power for power in exponents for digit in digits]
        found = [value for value in found if scale.least <= value <= scale.most]
        if len(found) <= most:
            break
    if len(found) < 3:
        return round_numbers(Scale(scale.least, scale.most), most)
    return found[:: math.ceil(len(found) / most)]


def _round_step(least: float) -> float:
    if least <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(least))
    return next(digit * power for digit in (1, 2, 5, 10) if digit * power >= least * (1 - 1e-9))


def histogram(
    words: Words,
    bars: Sequence[Bar],
    marks: Sequence[Mark],
    scale: Scale,
    ticks: Sequence[Tick],
    highest_label: str,
) -> str:
    """Bars, and lines with labels across them; what the highest bar stands for is written."""
    placed = list(_rows(marks, scale))
    rows = 1 + max((row for *_, row in placed), default=-1)
    top = TOP + ROW * rows
    highest = max((bar.height for bar in bars), default=0.0) or 1.0
    parts = [_axis(scale, ticks, top), _grid(top)]
    for bar in bars:
        if not bar.height:
            continue
        left, right = 100 * scale.at(bar.least), 100 * scale.at(bar.most)
        width = max(right - left - 0.15, 0.8)
        height = max(PLOT * bar.height / highest, 2.0)
        parts.append(
            f'<rect class="bar" x="{left:.2f}%" y="{top + PLOT - height:.1f}" '
            f'width="{width:.2f}%" height="{height:.1f}"><title>{escape(bar.label)}</title></rect>'
        )
    labels = [_height(top, highest_label)]
    for mark, anchor, row in placed:
        across, y = 100 * scale.at(mark.value), TOP + ROW * row
        parts.append(
            f'<line class="mark {mark.style}" x1="{across:.2f}%" x2="{across:.2f}%" '
            f'y1="{y + 4 if anchor == "middle" else y - 10}" y2="{top + PLOT}"/>'
        )
        labels.append(
            f'<text class="label" x="{across:.2f}%" dx="{SHIFTS[anchor]}" y="{y}" '
            f'text-anchor="{anchor}">{escape(mark.label)}</text>'
        )
    return _picture(words, top + PLOT + AXIS, parts + labels)


def curves(
    words: Words,
    drawn: Sequence[Curve],
    across: Scale,
    ticks: Sequence[Tick],
    heights: Sequence[Tick],
) -> str:
    """Curves over one axis; the highest of the `heights` is the top."""
    down = Scale(0.0, max((tick.value for tick in heights), default=0.0) or 1.0)
    places = [(TOP + PLOT * (1 - down.at(value)), label) for value, label in heights if value]
    parts = [_grid(y) for y, _ in places]
    paths = "".join(_path(curve, across, down) for curve in drawn)
    parts.append(
        f'<svg x="0" y="{TOP}" width="100%" height="{PLOT}" overflow="visible" '
        f'viewBox="0 0 {ACROSS} {DOWN}" preserveAspectRatio="none">{paths}</svg>'
    )
    parts.append(_axis(across, ticks, TOP))
    parts += [_height(y, label) for y, label in places]
    return _picture(words, TOP + PLOT + AXIS, parts)


def _grid(y: float) -> str:
    return f'<line class="grid" x1="0" x2="100%" y1="{y:.1f}" y2="{y:.1f}"/>'


def _height(y: float, label: str) -> str:
    return f'<text class="height" x="0" y="{y - 3:.1f}">{escape(label)}</text>'


def _path(curve: Curve, across: Scale, down: Scale) -> str:
    places = [
        (ACROSS * across.at(value), DOWN * (1 - down.at(height))) for value, height in curve.points
    ]
    if not places:
        return ""
    steps = [f"M{places[0][0]:.1f},{places[0][1]:.2f}"]
    for x, y in places[1:]:
        steps.append(f"H{x:.1f}V{y:.2f}" if curve.is_stepped else f"L{x:.1f},{y:.2f}")
    if curve.is_filled:
        steps.append(f"V{DOWN}H{places[0][0]:.1f}Z")
    shape = "area" if curve.is_filled else "line"
    return f'<path class="{shape} {curve.style}" d="{"".join(steps)}"/>'


def _axis(scale: Scale, ticks: Sequence[Tick], top: int) -> str:
    base = top + PLOT
    parts = [f'<line class="axis" x1="0" x2="100%" y1="{base}" y2="{base}"/>']
    for value, label in ticks:
        across = 100 * scale.at(value)
        anchor = "start" if across < 8 else "end" if across > 92 else "middle"
        x = f"{across:.2f}%"
        parts.append(
            f'<line class="axis" x1="{x}" x2="{x}" y1="{base}" y2="{base + 4}"/>'
            f'<text x="{x}" y="{base + 18}" text-anchor="{anchor}">{escape(label)}</text>'
        )
    return "".join(parts)


def _rows(marks: Sequence[Mark], scale: Scale) -> Iterator[tuple[Mark, str, int]]:
    """Each mark with the side and the row of its label, so that no two lie on each other."""
    taken: list[tuple[float, float, int]] = []
    found = [
        (*_side(100 * scale.at(mark.value), mark.label), mark)
        for mark in sorted(marks, key=lambda mark: mark.value)
    ]
    # From both sides inwards, each below all that it meets: few lines cross labels.
    on_right = [label for label in found if label[0] == "start"]
    for anchor, left, right, mark in (
        *on_right,
        *(label for label in reversed(found) if label[0] != "start"),
    ):
        met = [row for least, most, row in taken if least < right and left < most]
        row = max(met, default=-1) + 1
        taken.append((left, right, row))
        yield mark, anchor, row


def _side(at: float, label: str) -> tuple[str, float, float]:
    """Where a line's label is: right of it, else left of it, else above; from where to where."""
    width = LETTER_WIDTH * len(label)
    if at + width <= 100:
        return "start", at, at + width
    if at >= width:
        return "end", at - width, at
    return "middle", at - width / 2, at + width / 2


def _picture(words: Words, height: int, parts: Sequence[str]) -> str:
    name = escape(words.name)
    return (
        f'<svg class="chart" role="img" aria-labelledby="{name}-title {name}-desc" '
        f'width="100%" height="{height}">'
        f'<title id="{name}-title">{escape(words.title)}</title>'
        f'<desc id="{name}-desc">{escape(words.description)}</desc>{"".join(parts)}</svg>'
    )
