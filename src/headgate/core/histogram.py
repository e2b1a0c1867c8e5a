"""Latencies of a whole query in flat memory: a histogram with buckets 2 % wide that can be merged."""

from __future__ import annotations

from typing import Any

import numpy as np

from headgate.core.arrivals import Arrivals, FloatArray, IntArray, nearest_rank

_LEAST_S = 0.001
"""No micro-batch is faster than a millisecond: all below is one bucket, negative latencies (clock skew) included."""

_GROWTH = 1.02
_BOUNDS = 1040
"""Reaches ten days; what is slower shares the last bucket, whose quantile is the exact maximum."""

_BOUNDS_S: FloatArray = _LEAST_S * np.power(_GROWTH, np.arange(_BOUNDS), dtype=np.float64)
"""Bucket b holds the latencies above bound b-1 and up to bound b."""


class LatencyHistogram:
    """Counts latencies exactly into log-spaced buckets, so quantiles are at most 2 % too high and never too low."""

    __slots__ = ("_counts", "_max_s", "_sum_s")

    def __init__(self) -> None:
        self._counts: IntArray = np.zeros(_BOUNDS + 1, np.int64)
        self._sum_s = 0.0
        self._max_s: float | None = None

    @property
    def count(self) -> int:
        return int(self._counts.sum())

    @property
    def max_s(self) -> float | None:
        """The slowest record, exactly; None before the first."""
        return self._max_s

    @property
    def mean_s(self) -> float | None:
        return self._sum_s / self.count if self.count else None

    def add(self, arrivals: Arrivals, finished_s: float) -> None:
        """Count the records of a batch that finished at `finished_s`."""
        oldest_s, newest_s, mean_s = arrivals.oldest_s, arrivals.newest_s, arrivals.mean_s
        if oldest_s is None or newest_s is None or mean_s is None:
            return
        slowest_s = finished_s - oldest_s
        low, high = np.searchsorted(_BOUNDS_S, [finished_s - newest_s, slowest_s]).tolist()
        over = arrivals.counts_over(finished_s, _BOUNDS_S[low:high])
        self._counts[low : high + 1] -= np.diff(over, prepend=arrivals.total, append=0)
        self._sum_s += (finished_s - mean_s) * arrivals.total
        self._max_s = _greater(self._max_s, slowest_s)

    def quantile(self, q: float) -> float | None:
        """The latency that at least the share `q` of the records do not exceed; None before the first record."""
        if not 0.0 <= q <= 1.0:
            raise ValueError(f"a quantile is asked for a share from 0 to 1, not {q!r}")
        if self._max_s is None:
            return None
        bucket = int(np.searchsorted(np.cumsum(self._counts), nearest_rank(q, self.count)))
        return min(float(_BOUNDS_S[bucket]), self._max_s) if bucket < _BOUNDS else self._max_s

    def merge(self, other: LatencyHistogram) -> LatencyHistogram:
        """A new histogram with the records of both."""
        merged = LatencyHistogram()
        merged._counts = self._counts + other._counts
        merged._sum_s = self._sum_s + other._sum_s
        merged._max_s = self._max_s if other._max_s is None else _greater(self._max_s, other._max_s)
        return merged

    def to_json(self) -> dict[str, Any]:
        """A JSON value that lists only the buckets in use, as [number, count]."""
        used = np.flatnonzero(self._counts)
        pairs = np.column_stack([used, self._counts[used]]).tolist()
        return {"buckets": pairs, "sum_s": self._sum_s, "max_s": self._max_s}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> LatencyHistogram:
        """The inverse of `to_json`."""
        histogram = cls()
        for bucket, count in value["buckets"]:
            if not 0 <= bucket <= _BOUNDS or count < 0:
                raise ValueError(f"a latency histogram has no bucket {bucket!r} with {count!r} records")
            histogram._counts[bucket] = count
        histogram._sum_s, histogram._max_s = value["sum_s"], value["max_s"]
        return histogram


def _greater(known_s: float | None, new_s: float) -> float:
    return new_s if known_s is None else max(known_s, new_s)
