"""What this machine can do: each query's cost alone, then the rate that all of them reach together at saturation.

Load 1.0 is that rate: stock Spark (FAIR, trigger 0) gets no more than this through the same queries, deadlines aside.
Costs are measured at a steady density of events: a backlog replayed at once would keep far less state than real time.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from typing import Any

from headgate.bench.application import Application
from headgate.bench.plan import BenchQuery, Cell, Outcome

PER_CORE = 4_000
"""Reports per second and core for measuring costs: well below saturation, well above the fixed cost."""

TRIGGERS_S = (1.0, 4.0)
"""Two batch sizes give the two parts of the cost."""

_ALONE_S = ((6.0, 8.0), (4.0, 14.0))
_SATURATED_S = (20.0, 45.0)
"""Seconds to settle and to measure: the join's state holds 30 s of reports before it is as large as it gets."""

_RELAXED_S = 30.0
"""A deadline for runs in which nobody looks at deadlines."""


def easy(names: Sequence[str], cores: int) -> tuple[BenchQuery, ...]:
    """All queries at half of the rate at which they are measured alone, to warm up with."""
    return tuple(BenchQuery(name, _RELAXED_S, f"B({PER_CORE * cores / 2:.0f})") for name in names)


def query_costs(app: Application, queries: Sequence[str], cores: int, say: Callable[[str], None]) -> dict[str, Any]:
    """Every query alone with two fixed triggers: ``fixed_s``, ``per_row_s`` and the throughput that follows."""
    rate, costs = PER_CORE * cores, {}
    for name in queries:
        cells = [
            Cell((BenchQuery(name, _RELAXED_S, f"B({rate})", trigger_s=trigger_s),), *seconds)
            for trigger_s, seconds in zip(TRIGGERS_S, _ALONE_S, strict=True)
        ]
        costs[name] = _fit(*(app.run(cell).queries[name]["batch_times"] for cell in cells))
        say(
            f"{name} alone: {costs[name]['fixed_s']:.2f} s a batch and {costs[name]['per_row_s'] * 1e6:.2f} µs a row, "
            f"at most {costs[name]['rows_per_s']:,.0f} rows/s"
        )
    return costs


def _fit(small: list[tuple[int, float]], large: list[tuple[int, float]]) -> dict[str, Any]:
    (small_rows, small_s), (large_rows, large_s) = _typical(small), _typical(large)
    per_row_s = max(1e-9, (large_s - small_s) / max(1.0, large_rows - small_rows))
    fixed_s = max(0.0, small_s - per_row_s * small_rows)
    speeds = sorted(rows / max(1e-3, seconds - fixed_s) for rows, seconds in large)
    return {
        "fixed_s": fixed_s,
        "per_row_s": per_row_s,
        "rows_per_s": 1 / per_row_s,
        "spread": [speeds[0], speeds[-1]],
    }


def _typical(batches: list[tuple[int, float]]) -> tuple[float, float]:
    return statistics.median(rows for rows, _ in batches), statistics.median(seconds for _, seconds in batches)


def saturated(queries: Sequence[str], costs: dict[str, Any]) -> Cell:
    """All queries at the rate that their rows' costs alone would fill the machine with: more than it can do."""
    rate = 1 / sum(costs[name]["per_row_s"] for name in queries)
    return Cell(tuple(BenchQuery(name, _RELAXED_S, f"B({rate:.0f})") for name in queries), *_SATURATED_S)


def reached_rate(found: Outcome, costs: dict[str, Any]) -> float:
    """The rate into each query that was served; weighted by cost, as some queries get further than others."""
    weights = {name: costs[name]["per_row_s"] for name in found.queries}
    done = sum(found.queries[name]["rows_per_s"] * weight for name, weight in weights.items())
    return float(done / sum(weights.values()))
