"""When a warm-up may end: batch times have stopped falling (a JVM gets several times faster in its first minutes)."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Sequence

from headgate.core.batch import BatchRecord

WINDOW_S = 20.0
"""Two neighbouring windows of this length are compared: several batches of each query."""

STILL_FALLING = 0.93
"""Below this ratio of the newer to the older window the JVM is taken to be getting faster; nearer to 1 is noise."""


def still_falling(batches: Sequence[BatchRecord], now_s: float) -> bool:
    """Whether batches of the last window took clearly less time than those of the window before."""
    older = _typical_s(batches, now_s - 2 * WINDOW_S, now_s - WINDOW_S)
    newer = _typical_s(batches, now_s - WINDOW_S, now_s)
    ratios = [newer[query] / older[query] for query in newer.keys() & older.keys() if older[query] > 0]
    if not ratios:
        return True
    return math.exp(statistics.fmean(map(math.log, ratios))) < STILL_FALLING


def _typical_s(batches: Sequence[BatchRecord], since_s: float, until_s: float) -> dict[str, float]:
    durations: dict[str, list[float]] = defaultdict(list)
    for batch in batches:
        if since_s <= batch.finished_at_s < until_s and batch.duration_s > 0:
            durations[batch.query].append(batch.duration_s)
    return {query: statistics.median(found) for query, found in durations.items()}
