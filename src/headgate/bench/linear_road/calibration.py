"""What this machine can do: each query's cost alone, then the highest rate that all of them sustain together.

Load 1.0 is that common rate. Every query gets the same finite amount of reports, faster than the machine can do them,
under stock Spark (FAIR, trigger 0); the rate is the amount over the time from the first arrival until the last query
has done all of it. Light queries end first and leave the cores to the heavy one, as a steady common rate would have it:
what each query reaches while all are overloaded is the schedulers' choice, and the heavy one gets far less.

Rates and costs are those at one speed of the machine: each measurement is put right by the slowness of its minutes.

Costs are measured at a steady density of events and with full state: a backlog replayed at once would keep far less
of it than real time, and so does a query that has just begun.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from typing import Any

from headgate.bench.application import Application
from headgate.bench.plan import BenchQuery, Cell, Outcome
from headgate.errors import HeadgateError

PER_CORE = 4_000
"""Reports per second and core for measuring costs: well below saturation, well above the fixed cost."""

TRIGGERS_S = (1.0, 4.0)
"""Two batch sizes give the two parts of the cost."""

FULL_STATE_S = 35.0
"""LR1 keeps 30 s of reports and no vehicle reports twice before that, LR2 and LR3 have windows of 30 s."""

ENOUGH_BATCHES = 8
_ALONE_S = (12.0, 36.0)
"""Seconds to measure with each trigger: enough batches, and one that is cut off at either end."""

_STATELESS = ("alerts",)
_STATELESS_SETTLE_S, _STATELESS_TIMES = 6.0, 5
"""No state to fill; and its rows cost so little that only many of them show it."""

_TRIES = 3
"""Of a cost that cannot be believed, and of a rate that the traffic or the cell's end has limited."""

WORK_S = 100.0
"""How long the common work should take: the state is full for most of it, and the last batches are little of it."""

_ABOVE = 1.5
"""The traffic comes so much faster than the first guess of what can be done: its event time still covers over a minute,
twice what LR1 keeps."""

_LONGEST_WORK_S = 300.0

SIDE_BY_SIDE = 0.6
"""Of the rate that the rows' costs would allow if queries that run together were as quick as alone."""

GUESS_PER_CORE = 10_000
"""Reports per second and core into each query where costs are not known: a guess that the first try puts right."""

_RELAXED_S = 30.0
"""A deadline for runs in which nobody looks at deadlines."""


def query_costs(app: Application, queries: Sequence[str], cores: int, say: Callable[[str], None]) -> dict[str, Any]:
    """Every query alone with two fixed triggers: ``fixed_s``, ``per_row_s`` and the throughput that follows."""
    costs = {}
    for name in queries:
        costs[name] = _cost(app, name, PER_CORE * cores, say)
        say(
            f"{name} alone: {costs[name]['fixed_s']:.2f} s a batch and {costs[name]['per_row_s'] * 1e6:.2f} µs a row, "
            f"at most {costs[name]['rows_per_s']:,.0f} rows/s"
        )
    return costs


def _cost(app: Application, name: str, rate: int, say: Callable[[str], None]) -> dict[str, Any]:
    for _ in range(_TRIES):
        small, large = (_batch_times(app.run(cell), name) for cell in alone(name, rate))
        problem = doubt(small, large)
        if problem is None:
            return _fit(small, large)
        say(f"{name} alone, again: {problem}")
    raise HeadgateError(f"what {name} costs cannot be measured: {problem}; does something else run on this machine?")


def _batch_times(found: Outcome, name: str) -> list[tuple[int, float]]:
    return [(rows, seconds / found.slowness) for rows, seconds in found.queries[name]["batch_times"]]


def alone(name: str, rate: int) -> list[Cell]:
    """A cell for each trigger; measured once the state is full."""
    settle_s = _STATELESS_SETTLE_S if name in _STATELESS else FULL_STATE_S
    rate *= _STATELESS_TIMES if name in _STATELESS else 1
    return [
        Cell((BenchQuery(name, _RELAXED_S, f"B({rate})", trigger_s=trigger_s),), settle_s, measure_s)
        for trigger_s, measure_s in zip(TRIGGERS_S, _ALONE_S, strict=True)
    ]


def doubt(small: list[tuple[int, float]], large: list[tuple[int, float]]) -> str | None:
    """Why a cost from these batches would not be believed, if so."""
    if min(len(small), len(large)) < ENOUGH_BATCHES:
        return f"{len(small)} small and {len(large)} large batches are too few"
    low_s, middle_s, high_s = statistics.quantiles((seconds for _, seconds in large), n=4)
    if high_s - low_s > 0.5 * middle_s:
        return f"half of the large batches are not even within {low_s:.2f} … {high_s:.2f} s"
    if middle_s < 0.9 * _typical(small)[1]:
        return "large batches took less time than small ones"
    return None


def _fit(small: list[tuple[int, float]], large: list[tuple[int, float]]) -> dict[str, Any]:
    (small_rows, small_s), (large_rows, large_s) = _typical(small), _typical(large)
    per_row_s = max(1e-9, (large_s - small_s) / max(1.0, large_rows - small_rows))
    fixed_s = max(0.0, small_s - per_row_s * small_rows)
    speeds = [rows / max(1e-3, seconds - fixed_s) for rows, seconds in large]
    slow, _, fast = statistics.quantiles(speeds, n=4)
    return {"fixed_s": fixed_s, "per_row_s": per_row_s, "rows_per_s": 1 / per_row_s, "spread": [slow, fast]}


def _typical(batches: list[tuple[int, float]]) -> tuple[float, float]:
    return statistics.median(rows for rows, _ in batches), statistics.median(seconds for _, seconds in batches)


def first_guess(queries: Sequence[str], costs: dict[str, Any], cores: int) -> float:
    """Somewhat less than the rate with which the rows' costs alone would fill the machine, where they are known."""
    if all(name in costs for name in queries):
        return float(SIDE_BY_SIDE / sum(costs[name]["per_row_s"] for name in queries))
    return float(GUESS_PER_CORE * cores)


def common_work(queries: Sequence[str], guess: float) -> Cell:
    """As many reports for each query as take `WORK_S` at the rate `guess`, faster than that."""
    rate = _ABOVE * guess
    rows = round(WORK_S * guess)
    asked = tuple(BenchQuery(name, _RELAXED_S, f"B({rate:.0f})") for name in queries)
    return Cell(asked, 0.0, _LONGEST_WORK_S, rows=rows)


def common_rate(found: Outcome, rows: int) -> float:
    """The rate at which every query has done its `rows`; of one that did not come so far, what it has done."""
    return min(reached_rates(found, rows).values())


def reached_rates(found: Outcome, rows: int) -> dict[str, float]:
    """The same for each query alone: light ones end first."""
    return {
        name: float(rows / query["done_s"] if query["done_s"] else query["rows"] / found.measured_s)
        for name, query in found.queries.items()
    }


def better_guess(cell: Cell, found: Outcome) -> float | None:
    """A guess to try again with, if the traffic limited the rate, or came so fast that its state was too large."""
    assert cell.rows is not None
    rate, guess = common_rate(found, cell.rows), cell.rows / WORK_S
    if rate >= 0.9 * _ABOVE * guess:
        return 2 * guess
    return max(rate, 0.1 * guess) if rate < 0.5 * guess else None


def sustained(app: Application, queries: Sequence[str], guess: float) -> dict[str, float]:
    """The rate that each of `queries` has reached with the common work; the least is the highest common rate.

    `guess` is what the machine may do at its present speed, the rates are at that of the reference.
    """
    for _ in range(_TRIES):
        cell = common_work(queries, guess)
        found = app.run(cell)
        better = better_guess(cell, found)
        if better is None:
            break
        guess = better
    assert cell.rows is not None
    return {name: rate * found.slowness for name, rate in reached_rates(found, cell.rows).items()}
