"""What load a rule carries on a simulated machine with the measured costs of Linear Road, undisturbed by any host.

A look before Spark is asked, and what Spark cannot give: dozens of minutes of traffic for every load, so that a rule
that carries two per cent more can be told from one that had luck. Not a measurement: the machine is a model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any

from headgate.bench.linear_road.calibration import PER_CORE
from headgate.bench.linear_road.scenarios import Window, find_contender, find_scenario
from headgate.bench.machine import Cores
from headgate.bench.plan import BenchQuery, Contender
from headgate.bench.simulator import SimulatedQuery, simulate
from headgate.core.traffic import parse_traffic
from headgate.engine.session import SLOTS_PER_CORE
from headgate.errors import BadParameter

CORES = 2
"""Those of the machine that the costs come from."""

WARM_UP_S, MEASURE_S = 60.0, 60.0
"""A minute in which models learn, and one that is judged as the benchmark judges."""

LATE = 0.01
NOISE = 0.12
"""Of the logarithm of a batch's duration, as seen of batches that took turns."""

DRIVER_SHARE = 0.45
"""Of a batch's fixed cost: planning, logs and commits, by one thread."""

PASS_OVER_STATE = {"lr1": 0.12}
"""Queries whose fixed cost is a pass over their state, but for so many seconds: it grows with the rate."""

LOADS = tuple(0.05 * step for step in range(10, 31))
STEP = 0.05

NEVER = 2
"""After so many loads that no minute keeps, higher ones are not tried."""


@dataclass(frozen=True, slots=True)
class Costs:
    """What a calibration of the benchmark has measured."""

    queries: dict[str, dict[str, Any]]
    query_sets: dict[str, float]
    """Load 1.0, in reports per second, by the queries that run together."""

    @classmethod
    def of(cls, results: dict[str, Any]) -> Costs:
        found = results["calibration"] or {"queries": {}, "query_sets": {}}
        return cls(found["queries"], found["query_sets"])

    def check(self, scenario: str) -> None:
        """Refuse a scenario whose queries were not measured alone, or not together."""
        wanted = find_scenario(scenario)
        if wanted.query_set not in self.query_sets or any(name not in self.queries for name in wanted.query_names):
            problem = f"the results have no calibration of {wanted.query_set}, with each query alone"
            remedy = "name results of a `headgate bench linear-road` that measured it; --quick does not"
            raise BadParameter("scenarios", scenario, problem, remedy)


@dataclass(frozen=True, slots=True)
class Minute:
    """One simulated minute: who, where, at which load, with which traffic."""

    contender: str
    scenario: str
    load: float
    seed: int

    def kept(self, costs: Costs) -> bool:
        """Whether every query had at most one record in a hundred late."""
        contender, scenario = find_contender(self.contender), find_scenario(self.scenario)
        window = Window(WARM_UP_S, WARM_UP_S + MEASURE_S, self.seed)
        asked = scenario.queries(self.load * costs.query_sets[scenario.query_set], window)
        specs = [_spec(query, asked, contender, costs, self.seed) for query in asked]
        results = simulate(
            specs, window.end_s, _machine(contender), warm_up_s=WARM_UP_S, noise=NOISE, seed=self.seed
        )  # fmt: skip
        return all(result.rows > 0 and result.late_share <= LATE for result in results)


def capacities(
    costs: Costs, scenarios: Sequence[str], contenders: Sequence[str], seeds: int, say: Callable[[str], None]
) -> list[dict[str, Any]]:
    """For every scenario and contender the share of minutes that is kept at each load, and the capacity by it."""
    for scenario in scenarios:
        costs.check(scenario)
    rows = []
    with ProcessPoolExecutor() as pool:
        for scenario in scenarios:
            for contender in contenders:
                kept = _kept_by_load(pool, costs, scenario, contender, seeds)
                rows.append(
                    {"scenario": scenario, "contender": contender, "seeds": seeds}
                    | {"capacity": capacity(kept), "kept": {f"{load:.2f}": share for load, share in kept.items()}}
                )
                say(f"{scenario}, {contender}: {rows[-1]['capacity']:.3f} of the load")
    return rows


def capacity(kept: dict[float, float]) -> float:
    """The mean over all minutes of the load up to which each is kept, to the middle of a step."""
    return min(kept) - STEP / 2 + STEP * sum(kept.values())


def _kept_by_load(
    pool: ProcessPoolExecutor, costs: Costs, scenario: str, contender: str, seeds: int
) -> dict[float, float]:
    kept: dict[float, float] = {}
    for load in LOADS:
        minutes = [Minute(contender, scenario, load, seed) for seed in range(1, seeds + 1)]
        kept[load] = sum(pool.map(Minute.kept, minutes, [costs] * seeds)) / seeds
        if len(kept) >= NEVER and not any(list(kept.values())[-NEVER:]):
            break
    return kept


def _spec(
    query: BenchQuery, queries: Sequence[BenchQuery], contender: Contender, costs: Costs, seed: int
) -> SimulatedQuery:
    cost = costs.queries[query.name]
    traffic = parse_traffic(query.rate, seed)
    fixed_s = fixed_at(query.name, cost["fixed_s"], traffic.mean_rate)
    edges = [traffic.count_before(float(second)) for second in range(round(WARM_UP_S + MEASURE_S) + 2)]

    def rows_per_s(now_s: float) -> float:
        return edges[int(now_s) + 1] - edges[int(now_s)]

    return SimulatedQuery(
        query.deadline_s, fixed_s, cost["per_row_s"], rows_per_s, contender.admission,
        contender.trigger_s(query, queries), DRIVER_SHARE * min(fixed_s, cost["fixed_s"]),
    )  # fmt: skip


def fixed_at(query: str, fixed_s: float, rate: float) -> float:
    """What a batch of `query` costs whatever its rows, at `rate`, if it was `fixed_s` at the calibration's."""
    if query not in PASS_OVER_STATE:
        return fixed_s
    least_s = min(fixed_s, PASS_OVER_STATE[query])
    return least_s + (fixed_s - least_s) * rate / (PER_CORE * CORES)


def _machine(contender: Contender) -> Cores:
    return Cores(CORES, CORES if contender.plain_slots else CORES * SLOTS_PER_CORE, contender.policy == "edf")
