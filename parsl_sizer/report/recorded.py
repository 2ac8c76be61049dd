"""What the page of a run needs of its archive besides the summary."""

from __future__ import annotations

from collections.abc import Sequence

from parsl_sizer.archive.base import Archive, Query
from parsl_sizer.model import Ending, Kind

from .figures import Summary
from .html import most_wasteful
from .whatif import FEWEST, CurvePoint, curve


def curves_of(summary: Summary, archive: Archive) -> dict[str, Sequence[CurvePoint]]:
    """What other first allocations would have cost the category that wasted most.

    Nothing, if too few of its peaks were measured.
    """
    category = most_wasteful(summary.categories)
    if category is None or category.peaks is None or category.peaks.measured < FEWEST:
        return {}
    query = Query(run_id=summary.run.run_id, category=category.name, endings=(Ending.DONE,))
    usages = (entry.outcome.usage for entry in archive.entries(query))
    peaks = ((usage.peak.get(Kind.MEMORY, 0.0), usage.wall_s) for usage in usages)
    points = curve((peak, wall_s) for peak, wall_s in peaks if peak > 0 and wall_s > 0)
    return {category.name: points}
