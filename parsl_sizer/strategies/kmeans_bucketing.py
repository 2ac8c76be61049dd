"""K-means bucketing: buckets around the clusters of the peaks seen so far (seed 000, V.B.3)."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from .base import Family, Setting
from .quantized_bucketing import ColdStart, QuantizedBuckets, bucketing

if TYPE_CHECKING:
    from numpy.typing import NDArray


class KMeansBuckets(QuantizedBuckets):
    """The peaks, cut into `n` clusters by one step of Lloyd's algorithm per finished task.

    When the cold start is over the buckets are even, as quantized ones are. From then
    on, with every finished task, each peak goes to the bucket with the nearest mean
    (the lower of two), and the means are taken anew. A bucket that is left empty has no
    end; its mean becomes the largest peak, so that it can fill again.

    >>> from parsl_sizer.model import TaskInfo
    >>> buckets, task = KMeansBuckets(2, ColdStart(0)), TaskInfo(1, "align")
    >>> for peak in 1, 2, 9, 1, 2, 8, 1:
    ...     buckets.observe(task, peak, 60)
    >>> buckets.ends
    (2.0, 9.0)

    T. S. Phung et al., "Not All Tasks Are Created Equal", WORKS 2021, section V.B.
    """

    def __init__(self, n: int, cold_start: ColdStart) -> None:
        super().__init__(n, cold_start)
        self._means: NDArray[np.float64] | None = None

    def _cut(self) -> tuple[float, ...]:
        if not self._cold_start.is_over:
            return super()._cut()
        peaks, counts = self._points.columns()
        means = self._even_means(peaks, counts) if self._means is None else self._means
        between = np.searchsorted(peaks, (means[:-1] + means[1:]) / 2, side="right")
        buckets = [slice(*edges) for edges in pairwise([0, *between, len(peaks)])]
        filled = [bucket for bucket in buckets if bucket.start < bucket.stop]
        new = [peaks[bucket] @ counts[bucket] / counts[bucket].sum() for bucket in filled]
        self._means = np.array(new + [peaks[-1]] * (self.n - len(new)))
        return tuple(float(peaks[bucket.stop - 1]) for bucket in filled)

    def _even_means(
        self, peaks: NDArray[np.float64], counts: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """The means of the even buckets that the clusters start from."""
        tasks = np.repeat(peaks, counts.astype(int))
        even = np.split(tasks, self._even_sizes()[:-1])
        return np.array([bucket.mean() if len(bucket) else peaks[-1] for bucket in even])


def build(
    setting: Setting, *, level: int = 3, n: int | None = None, together: bool = False
) -> Family:
    """The finished tasks' peaks clustered into n buckets, tried from the lowest.

    The options are those of quantized bucketing: at `level` 3 each category has its
    own buckets (`n` is 1 unless given), at 1 and 2 all categories share them: `n` is 1,
    or at level 2 the number of categories where the trace is known beforehand, else 2.
    Only the kind that ran out takes its next bucket; `together=True` is the paper's
    way, all kinds at once.
    """
    return bucketing(KMeansBuckets, setting, level, n, together)
