"""What seed paper 004 printed: Tables 1 and 2 of Souza et al., "ASA", 2024."""

from __future__ import annotations

from typing import NamedTuple


class Strategy(NamedTuple):
    """How a workflow fared under one strategy: seconds, and core-hours."""

    waited_s: float
    makespan_s: float
    core_h: float


class Table1(NamedTuple):
    workflow: str
    cores: int
    big_job: Strategy
    per_stage: Strategy
    asa: Strategy


def _row(workflow: str, cores: int, *figures: float) -> Table1:
    return Table1(workflow, cores, *(Strategy(*figures[at : at + 3]) for at in (0, 3, 6)))


TABLE_1 = (
    _row("montage", 28, 150, 1287, 9, 258, 1408, 7, 132, 1277, 7),
    _row("montage", 56, 206, 1261, 16, 426, 1496, 12, 219, 1280, 12),
    _row("montage", 112, 452, 1513, 33, 699, 1779, 20, 393, 1464, 20),
    _row("montage", 160, 1415, 2718, 58, 2220, 3507, 40, 1652, 2921, 39),
    _row("montage", 320, 8135, 10126, 177, 15582, 17170, 106, 10062, 11637, 105),
    _row("montage", 640, 10200, 11940, 309, 16600, 18200, 171, 11851, 13436, 169),
    _row("blast", 28, 70, 2750, 20, 68, 2727, 20, 75, 2749, 20),
    _row("blast", 56, 133, 1476, 20, 153, 1508, 21, 111, 1477, 21),
    _row("blast", 112, 165, 926, 23, 194, 965, 24, 144, 907, 23),
    _row("blast", 160, 7100, 7846, 33, 7125, 7880, 33, 7041, 7800, 33),
    _row("blast", 320, 8133, 8494, 32, 8240, 8611, 33, 8194, 8557, 32),
    _row("blast", 640, 10133, 10394, 46, 10150, 10429, 47, 10144, 10419, 48),
    _row("statistics", 28, 52, 5593, 43, 48, 5487, 42, 51, 5549, 43),
    _row("statistics", 56, 96, 4397, 66, 263, 4644, 34, 116, 4444, 33),
    _row("statistics", 112, 124, 4110, 124, 191, 4193, 62, 70, 4085, 62),
    _row("statistics", 160, 2772, 7095, 192, 4960, 9241, 95, 2712, 6986, 95),
    _row("statistics", 320, 7935, 11886, 351, 18008, 21993, 177, 7471, 11439, 176),
    _row("statistics", 640, 10122, 13868, 665, 21014, 24817, 338, 9497, 13369, 344),
)


class Table2(NamedTuple):
    """Waits in hours with their deviations, ratios in per cent, the overhead in core-hours."""

    workflow: str
    cores: int
    real_h: tuple[float, float]
    asa_h: tuple[float, float]
    perceived_h: tuple[float, float]
    hit: float
    miss: float
    overhead_h: tuple[float, float]


TABLE_2 = (
    Table2("montage", 28, (0.4, 0.3), (0.7, 0.6), (0.5, 0.4), 60, 40, (1.7, 0.5)),
    Table2("montage", 56, (1.1, 0.8), (1.2, 0.9), (0.4, 0.4), 68, 32, (3.0, 0.8)),
    Table2("montage", 112, (1.5, 0.7), (2.0, 1.9), (0.5, 0.4), 87, 13, (2.0, 0.8)),
    Table2("montage", 160, (11, 1.6), (3.9, 4.6), (0.7, 0.3), 100, 0, (0, 0)),
    Table2("montage", 320, (15, 1.3), (12, 3.9), (0.2, 0.3), 100, 0, (0, 0)),
    Table2("montage", 640, (17, 0.6), (12, 3.3), (0.3, 0.2), 100, 0, (0, 0)),
    Table2("blast", 28, (0.4, 0.3), (1.0, 1.0), (0.6, 0.3), 70, 30, (8, 1.9)),
    Table2("blast", 56, (1.1, 0.8), (1.3, 1.2), (0.7, 0.5), 71, 29, (11, 2.7)),
    Table2("blast", 112, (1.5, 0.7), (1.0, 1.0), (0.6, 0.4), 89, 11, (3, 0.7)),
    Table2("blast", 160, (11, 1.6), (4.5, 5.0), (0.7, 0.4), 100, 0, (0, 0)),
    Table2("blast", 320, (15, 1.3), (11, 4.1), (0.2, 0.3), 100, 0, (0, 0)),
    Table2("blast", 640, (16, 0.6), (11, 3.8), (0.3, 0.2), 100, 0, (0, 0)),
    Table2("statistics", 28, (0.4, 0.6), (0.5, 0.7), (0.4, 0.4), 67, 33, (3, 0.2)),
    Table2("statistics", 56, (1.1, 0.8), (1.2, 0.9), (0.4, 0.4), 69, 31, (6, 2.0)),
    Table2("statistics", 112, (1.5, 0.7), (2.0, 1.9), (0.5, 0.4), 87, 13, (5, 1.0)),
    Table2("statistics", 160, (11, 1.7), (5.2, 5.8), (0.6, 0.4), 100, 0, (0, 0)),
    Table2("statistics", 320, (14, 1.3), (11, 3.9), (0.2, 0.3), 100, 0, (0, 0)),
    Table2("statistics", 640, (16, 0.6), (12, 3.3), (0.3, 0.2), 100, 0, (0, 0)),
)
