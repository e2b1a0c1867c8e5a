"""Latencies of one query as the benchmark tells them: over all records, those that never got a result included.

A record without a result has a latency that nobody knows, but it is longer than what the record has waited so far.
Figures that depend on it are infinite (None), and `at_least_s` says what they are at the very least.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headgate.core.arrivals import nearest_rank
from headgate.core.histogram import LatencyHistogram

QUANTILES = {"p50_s": 0.5, "p95_s": 0.95, "p99_s": 0.99, "max_s": 1.0}
BATCH_QUANTILES = {"batch_max_p50_s": 0.5, "batch_max_p95_s": 0.95, "batch_max_p99_s": 0.99}

_SHARES = (*(index / 200 for index in range(1, 200)), 0.997, 0.999, 1.0)


def latency_figures(
    latencies: LatencyHistogram, batch_maxima_s: Sequence[float], left: int, waited_s: float
) -> dict[str, Any]:
    """Quantiles, means and CDFs with `left` records that have waited for `waited_s` or more without a result.

    Those are one more batch, a lost one.
    """
    maxima_s, lost = sorted(batch_maxima_s), int(left > 0)
    figures: dict[str, Any] = {key: quantile_s(latencies, share, left) for key, share in QUANTILES.items()}
    figures |= {key: _batch_quantile_s(maxima_s, share, lost) for key, share in BATCH_QUANTILES.items()}
    figures["mean_s"] = None if left else latencies.mean_s
    figures["batch_max_mean_s"] = sum(maxima_s) / len(maxima_s) if maxima_s and not left else None
    if left:
        unknown = [key for key, value in figures.items() if value is None]
        figures["at_least_s"] = {key: _at_least_s(key, latencies, maxima_s, left, waited_s) for key in unknown}
    return figures | {
        "cdf": cdf(latencies, left),
        "batch_max_cdf": [(value, (index + 1) / (len(maxima_s) + lost)) for index, value in enumerate(maxima_s)],
    }


def quantile_s(latencies: LatencyHistogram, share: float, left: int) -> float | None:
    """The latency that `share` of all records stay within; None if only the `left` ones can tell."""
    finished = latencies.count
    if not finished:
        return None
    rank = nearest_rank(share, finished + left)
    return latencies.quantile(rank / finished) if rank <= finished else None


def cdf(latencies: LatencyHistogram, left: int) -> list[tuple[float, float]]:
    """(latency, share of all records); with records left it ends below 1."""
    if not latencies.count:
        return []
    reached = latencies.count / (latencies.count + left)
    shares = [share for share in _SHARES if share < reached]
    known = [(latency, share) for share in shares if (latency := quantile_s(latencies, share, left)) is not None]
    return [*known, (latencies.max_s or 0.0, reached)]


def _batch_quantile_s(maxima_s: Sequence[float], share: float, lost: int) -> float | None:
    """By nearest rank, so that p95 of fewer than twenty batches is their maximum."""
    rank = nearest_rank(share, len(maxima_s) + lost) if maxima_s else 1
    return maxima_s[rank - 1] if rank <= len(maxima_s) else None


def _at_least_s(key: str, latencies: LatencyHistogram, maxima_s: Sequence[float], left: int, waited_s: float) -> float:
    """What a figure would be if every record had got its result when it had waited for `waited_s`."""
    if key == "mean_s":
        return ((latencies.mean_s or 0.0) * latencies.count + waited_s * left) / (latencies.count + left)
    if key == "batch_max_mean_s":
        return (sum(maxima_s) + waited_s) / (len(maxima_s) + 1)
    if key in BATCH_QUANTILES:  # the lost batch is then the slowest of all
        return max([waited_s, *maxima_s[-1:]])
    return max(waited_s, latencies.max_s or 0.0) if key == "max_s" else waited_s
