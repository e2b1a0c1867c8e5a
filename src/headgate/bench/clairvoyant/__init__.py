"""The limit of a benchmark: what a scheduler that knows all arrivals and all costs would reach with the same batches.

The model: the machine is one serial resource; a batch of n records takes `fixed_s + per_row_s * n` of it. A query has
one batch at a time, which takes the oldest records and none that arrive after it was formed. Deciding costs nothing,
and a batch may be set aside for another one and taken up again for free.

For given batches the earliest deadline first is the best order on one machine as long as everything can be in time.
Which batches are best is hard, so a search tries ways to cut them (a span of time, the latest start, idle time used or
not) and to bear overload (what is late anyway yields or not; a part of each batch is given up), first the same for all
queries, then query by query. It keeps what makes the worst query's late share least, then the sum of the shares.

How to read it: `limit` belongs to a schedule that exists under the model, so the optimum is at most that late. It is no
strict bound for real runs: it knows no noise, garbage collection or round trips (so they should be worse), but also no
gain from batches that together use the cores better than one after the other (so they could be better). At the end of a
trace work may be left over whose deadline is later; in lasting overload a longer trace has larger shares. `bound` is
below the worst share of every schedule of the model.

Records are handled in buckets: a bucket can be taken when its last instant is over, and is late as a whole if a record
of its first instant would be. Both are against the schedule, by at most `BUCKET_S` each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from headgate.bench.clairvoyant.floor import bound
from headgate.bench.clairvoyant.machine import late_shares, run, triggered
from headgate.bench.clairvoyant.search import best_plan
from headgate.bench.clairvoyant.streams import BUCKET_S, Batch, ClairvoyantQuery, Stream, streams_of

__all__ = ["BUCKET_S", "Batch", "ClairvoyantQuery", "bound", "capacity", "fixed_trigger", "limit", "schedule"]

_CAPACITY_STEP = 0.01
"""Share of the load: a probe takes seconds, and measured capacities are no finer."""


def limit(queries: Sequence[ClairvoyantQuery], seconds: float, *, skip_s: float = 0.0) -> dict[str, float]:
    """The late share per query of the records that arrive after `skip_s` and whose deadline is before the end."""
    streams = streams_of(queries, seconds, skip_s)
    return _named(streams, late_shares(streams, best_plan(streams, seconds), seconds))


def schedule(queries: Sequence[ClairvoyantQuery], seconds: float, *, skip_s: float = 0.0) -> dict[str, list[Batch]]:
    """The batches behind `limit`, as far as they are done before the end."""
    streams = streams_of(queries, seconds, skip_s)
    taken = run(streams, best_plan(streams, seconds), seconds)
    return {stream.query.name: stream.in_rows(batches) for stream, batches in zip(streams, taken, strict=True)}


def fixed_trigger(
    queries: Sequence[ClairvoyantQuery], seconds: float, share: float, *, skip_s: float = 0.0
) -> dict[str, float]:
    """The same without foresight: a trigger of `share` of its deadline for each query, first come first served."""
    streams = streams_of(queries, seconds, skip_s)
    return _named(streams, late_shares(streams, triggered(len(streams), share), seconds))


def capacity(
    queries_at: Callable[[float], Sequence[ClairvoyantQuery]], seconds: float, low: float, high: float,
    slo: float = 0.99, *, skip_s: float = 0.0,
) -> float:  # fmt: skip
    """The highest load at which every query's late share is at most `1 - slo`; 0 if `low` is too much already."""
    enough = 1.0 - slo

    def kept(load: float) -> bool:
        streams = streams_of(queries_at(load), seconds, skip_s)
        return max(late_shares(streams, best_plan(streams, seconds, enough), seconds)) <= enough

    if not kept(low):
        return 0.0
    if kept(high):
        return high
    while high - low > _CAPACITY_STEP * high:
        middle = (low + high) / 2
        low, high = (middle, high) if kept(middle) else (low, middle)
    return low


def _named(streams: Sequence[Stream], shares: Sequence[float]) -> dict[str, float]:
    return {stream.query.name: share for stream, share in zip(streams, shares, strict=True)}
