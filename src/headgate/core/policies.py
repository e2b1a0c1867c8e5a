"""Which running batch gets the cores: a policy maps the snapshot to shares of Spark's FAIR pools.

Spark serves a pool whose running tasks are below its ``min_share`` before all others; ``weight`` divides what is left.
So ``min_share = all cores`` gives strict, work-conserving priority at task boundaries, weights alone never do.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from headgate.core.snapshot import QueryView, Running, Snapshot
from headgate.errors import BadParameter

WEIGHT_SPAN = 100
"""Weights lie in 1..WEIGHT_SPAN: wide enough that the urgent one wins nearly always, small enough for Spark's ints."""


@dataclass(frozen=True, slots=True)
class Share:
    """The two numbers of a Spark pool."""

    min_share: int = 0
    weight: int = 1


Policy = Callable[[Snapshot], dict[str, Share]]


def fair(snapshot: Snapshot) -> dict[str, Share]:
    """All pools equal: Spark's own FAIR."""
    return {query.name: Share() for query in snapshot.queries}


def fifo(snapshot: Snapshot) -> dict[str, Share]:
    """The batch that was let in first has the cores first."""
    return _strict(snapshot, lambda query, running: (running.opened_at_s,))


def edf(snapshot: Snapshot) -> dict[str, Share]:
    """Earliest deadline first among those that can still be kept; then what is late, then what has no deadline.

    Plain EDF would serve the latest batch first under overload, and with it make the next one late, and the next.
    """
    return _strict(snapshot, lambda query, running: _by_deadline(running, snapshot.now_s))


def _by_deadline(running: Running, now_s: float) -> tuple[float, ...]:
    return math.isinf(running.due_at_s), running.due_at_s < now_s, running.due_at_s


def lbf(snapshot: Snapshot) -> dict[str, Share]:
    """Hone's largest backlog first, between queries: the one with the most seconds of work before it."""
    return _strict(snapshot, lambda query, running: (-_backlog_s(query, running, snapshot.now_s),))


def edf_lbf(snapshot: Snapshot) -> dict[str, Share]:
    """EDF among the batches that are in danger of being late, largest backlog first among the rest."""

    def order(query: QueryView, running: Running) -> tuple[float, ...]:
        if _in_danger(running, snapshot.now_s):
            return 0.0, *_by_deadline(running, snapshot.now_s)
        return 1.0, -_backlog_s(query, running, snapshot.now_s)

    return _strict(snapshot, order)


DANGER = 2.0
"""A batch is in danger if what is left of it, this many times, does not fit before its deadline."""


def _in_danger(running: Running, now_s: float) -> bool:
    return now_s + DANGER * max(0.0, running.finish_at_s - now_s) > running.due_at_s


def _backlog_s(query: QueryView, running: Running, now_s: float) -> float:
    """Seconds of work: what is left of its batch, and what waits behind it."""
    waiting_s = query.cost.expected_s(query.waiting.rows) if query.waiting is not None else 0.0
    return max(0.0, running.finish_at_s - now_s) + waiting_s


def start_order(policy: str, query: QueryView, now_s: float) -> tuple[float, ...]:
    """Which of the queries that wait is asked first when a batch has ended: what `policy` would give the cores to."""
    backlog_s = 0.0 if query.waiting is None else query.cost.expected_s(query.waiting.rows)
    if policy == "lbf":
        return (-backlog_s,)
    if policy == "edf-lbf" and now_s + DANGER * backlog_s <= query.due_at_s:
        return math.inf, -backlog_s
    return (query.due_at_s,)


def rdas(snapshot: Snapshot) -> dict[str, Share]:
    """zStream's sharing: min-max normalised urgency becomes weights, and the cores are divided by them."""
    running = [query for query in snapshot.queries if query.running is not None]
    weights = _urgency([_remaining_s(query, snapshot.now_s) for query in running])
    cores = _apportion(weights, snapshot.cores)
    shares = {query.name: Share() for query in snapshot.queries}
    for query, weight, granted in zip(running, weights, cores, strict=True):
        shares[query.name] = Share(granted, weight)
    return shares


POLICIES: dict[str, Policy] = {
    "fifo": fifo, "fair": fair, "edf": edf, "rdas": rdas, "lbf": lbf, "edf-lbf": edf_lbf
}  # fmt: skip
DEFAULT_POLICY = "edf"


def find_policy(name: str) -> Policy:
    """Return the policy called `name`."""
    if name not in POLICIES:
        raise BadParameter("policy", name, "there is no such policy", f"use one of {', '.join(POLICIES)}")
    return POLICIES[name]


def _strict(snapshot: Snapshot, key: Callable[[QueryView, Running], tuple[float, ...]]) -> dict[str, Share]:
    """Everything for the first of an order, falling weights for the rest (they matter when the first leaves cores)."""
    shares = {query.name: Share() for query in snapshot.queries}
    ranked = sorted((key(query, query.running), query.name) for query in snapshot.queries if query.running is not None)
    for rank, (_, name) in enumerate(ranked):
        shares[name] = Share(snapshot.cores if rank == 0 else 0, max(1, WEIGHT_SPAN >> rank))
    return shares


def _remaining_s(query: QueryView, now_s: float) -> float:
    return query.running.due_at_s - now_s if query.running else math.inf


def _urgency(remaining_s: Sequence[float]) -> list[int]:
    """Weights 1..WEIGHT_SPAN, the least remaining time the highest; queries without a deadline the lowest."""
    finite = [value for value in remaining_s if math.isfinite(value)]
    if not finite:
        return [1] * len(remaining_s)
    low, high = min(finite), max(finite)
    span = (high - low) or 1.0
    return [
        1 if not math.isfinite(value) else 1 + round((WEIGHT_SPAN - 1) * (1.0 - (value - low) / span))
        for value in remaining_s
    ]


def _apportion(weights: Sequence[int], cores: int) -> list[int]:
    """Divide whole cores by weight, largest remainders first."""
    total = sum(weights)
    if not total:
        return []
    exact = [weight * cores / total for weight in weights]
    granted = [int(value) for value in exact]
    by_remainder = sorted(range(len(exact)), key=lambda i: exact[i] - granted[i], reverse=True)
    for index in by_remainder[: cores - sum(granted)]:
        granted[index] += 1
    return granted
