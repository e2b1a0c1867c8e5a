"""When a warm-up may end: batch times have stopped falling and the JVM has compiled what it runs.

A JVM gets several times faster in its first minutes, and its compilers go on for a quarter of an hour, at the cost of
the queries: a rare batch's code becomes hot late.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from headgate.core.batch import BatchRecord

WINDOW_S = 20.0
"""Two neighbouring windows of this length are compared: several batches of each query."""

STILL_FALLING = 0.93
"""Below this ratio of the newer to the older window the JVM is taken to be getting faster; nearer to 1 is noise."""

COMPILING = 0.2
"""The compilers are busy while they work for more than this share of the time."""


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


@dataclass(slots=True)
class CompilerWatch:
    """How busy a JVM's compilers have been over the last window."""

    looks: list[tuple[float, float]] = field(default_factory=list)
    """(moment, time that the compilers have worked until then)."""

    def look(self, at_s: float, compile_s: float) -> None:
        """Later looks than this one ask for the share since the last one that is a window old."""
        self.looks.append((at_s, compile_s))
        while len(self.looks) > 2 and self.looks[1][0] <= at_s - WINDOW_S:
            del self.looks[0]

    @property
    def busy(self) -> bool:
        """Also before a window has passed: then nobody knows."""
        (since_s, before_s), (at_s, compile_s) = self.looks[0], self.looks[-1]
        return at_s - since_s < WINDOW_S or compile_s - before_s > COMPILING * (at_s - since_s)
