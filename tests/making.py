"""Small builders for tests: trained models, queries at a moment."""

from __future__ import annotations

from headgate.core.cost import CostModel
from headgate.core.snapshot import Promise, QueryView, Running, Snapshot, Waiting


def model(
    fixed_s: float = 0.2, per_row_s: float = 1e-5, batches: int = 40, company: bool = True, stretch: float = 0.7
) -> CostModel:
    """A model that has seen batches of varying size that took just what the line says; in company, 1.7 times that."""
    cost = CostModel()
    for index in range(batches):
        rows = 1_000 + 3_000 * (index % 7)
        overlap = float(index % 2) if company else 0.0
        cost = cost.observe(rows, (fixed_s + per_row_s * rows) * (1.0 + stretch * overlap), overlap)
    return cost


def query(
    name: str = "q",
    *,
    deadline_s: float | None = 5.0,
    slo: float = 0.99,
    cost: CostModel | None = None,
    rows: float | None = 5_000,
    oldest_at_s: float = 100.0,
    rate_rows_s: float = 0.0,
    running: Running | None = None,
    divisible: bool = True,
    asking: bool = True,
) -> QueryView:
    waiting = None if rows is None else Waiting(rows, oldest_at_s, rate_rows_s)
    return QueryView(name, Promise(deadline_s, slo), cost or model(), waiting, running, divisible, asking)


def moment(now_s: float, *queries: QueryView, cores: int = 2, policy: str = "edf") -> Snapshot:
    return Snapshot(now_s, cores, queries, policy)


def running(
    opened_at_s: float = 100.0,
    rows: float = 1_000,
    finish_at_s: float = 101.0,
    due_at_s: float = 105.0,
    *,
    stuck: bool = False,
) -> Running:
    return Running(opened_at_s, rows, finish_at_s, due_at_s, stuck)
