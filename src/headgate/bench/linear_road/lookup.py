"""Finding things in the results of the benchmark: runs, cells, pairs, and the figures of one run.

Runs are cut short and queries finish nothing when a load is too much for a contender. The figures here say so
(infinite latency, everything late) instead of telling about the lucky records that were served before. Records that had
no result at the end, though their deadline had passed, count in every share: a quantile that lies among them is
infinite ("beyond the end of the measurement"), and so is a mean; a CDF ends below one. What Headgate is compared with
gets the benefit of the doubt: such a record of theirs counts with the least that it has waited.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from headgate.bench.linear_road.load import is_rate

Results = Mapping[str, Any]
"""`results.json`, format 1."""
Run = Mapping[str, Any]
Cdf = Sequence[Sequence[float]]
"""(latency, share) pairs, both ascending."""

OURS = "slo-edf"
"""Headgate as it comes: what the targets are about."""
TRIGGER_0 = "trigger-0"
FEW_BATCHES = 20
"""With fewer the 95th percentile of the maximum per batch is simply the maximum."""
WITH_AND_WITHOUT = (OURS, "sb-fifo", "sb-fair")
"""Both modules, and neither."""
ALL_CORES = ("cells", "modules", "mixed", "sweep")
"""Parts that use the whole machine. A load means the same in all of them, and something else with fewer cores."""

ORDER = (
    OURS, "slo-rdas", "admission-only", "scheduling-only", "zstream-edf", "zstream-rdas", "qspark-fair",
    TRIGGER_0, "sb-fifo", "sb-fair",
)  # fmt: skip
"""How contenders are listed; the others (the static triggers of the sweep) follow by name."""


class Cell(NamedTuple):
    """What was measured, apart from the repeat."""

    part: str
    scenario: str
    contender: str
    load: float
    cores: int


def commands(results: Results) -> list[str]:
    """All that measured something into these results, in their order."""
    return [line for line in str(results.get("command") or "").split("\n") if line]


def cell_of(run: Run) -> Cell:
    return Cell(run["part"], run["scenario"], run["contender"], round(run["load"], 3), run.get("cores", 0))


def runs_of(
    results: Results, *, parts: Iterable[str] | None = None, contender: str | None = None, load: float | None = None
) -> list[Run]:
    """The runs of some parts, one contender or one load, in the order of the file; without queries a run is none."""
    wanted = None if parts is None else set(parts)
    return [
        run
        for run in results.get("runs") or []
        if run["queries"]
        and (wanted is None or run["part"] in wanted)
        and (contender is None or run["contender"] == contender)
        and (load is None or same_load(run["load"], load))
    ]


def same_load(one: float, other: float) -> bool:
    """Loads are chosen with two digits: anything closer is the same one, stored with another rounding."""
    return abs(one - other) < 0.005


def by_cell(runs: Iterable[Run]) -> dict[Cell, dict[int, Run]]:
    """Each cell's runs by repeat."""
    cells: dict[Cell, dict[int, Run]] = {}
    for run in runs:
        cells.setdefault(cell_of(run), {})[run["repeat"]] = run
    return cells


def pairs(runs: Sequence[Run], ours: str, theirs: str) -> Iterator[tuple[Run, Run]]:
    """Runs of two contenders in the same cell and repeat.

    Applications of other contenders may have run between them; their order changes with the repeat.
    """
    cells = by_cell(runs)
    for cell, repeats in cells.items():
        if cell.contender == ours:
            others = cells.get(cell._replace(contender=theirs), {})
            yield from ((run, others[repeat]) for repeat, run in repeats.items() if repeat in others)


def finished(run: Run, query: str) -> bool:
    return bool(run["queries"].get(query, {}).get("rows"))


def violation_rate(run: Run, query: str) -> float:
    """The share of late records; a query that finished nothing was late with everything."""
    return float(run["queries"][query]["violation_rate"]) if finished(run, query) else 1.0


def worst_violation_rate(run: Run) -> float:
    return max((violation_rate(run, query) for query in run["queries"]), default=1.0)


def latency_s(run: Run, query: str, key: str) -> float:
    """One of a query's latencies; infinite if the run was cut short, or if only records without a result could tell."""
    value = None if run.get("aborted") or not finished(run, query) else _figure(run["queries"][query], key)
    return math.inf if value is None else value


def seen_latency_s(run: Run, query: str, key: str) -> float:
    """The least that it can be: the benefit of the doubt, for the contender that Headgate is compared with."""
    if not finished(run, query):
        return math.inf
    found = run["queries"][query]
    value = _figure(found, key)
    if value is None:
        value = (found.get("at_least_s") or {}).get(key)
    return math.inf if value is None else float(value)


def only_at_least(run: Run, query: str, key: str) -> bool:
    """Whether :func:`seen_latency_s` is a lower bound: the true figure lies beyond the end of the measurement."""
    return finished(run, query) and key in (run["queries"].get(query, {}).get("at_least_s") or {})


def few_batches(run: Run, query: str) -> bool:
    return finished(run, query) and run["queries"][query].get("batches", 0) < FEW_BATCHES


def _figure(found: Mapping[str, Any], key: str) -> float | None:
    """A figure as stored, or read off the CDF of the maximum per batch for the quantiles that are not stored."""
    if key in ("batch_max_p50_s", "batch_max_p99_s") and key not in found:
        return quantile_s(found.get("batch_max_cdf") or [], 0.5 if "p50" in key else 0.99)
    value = found.get(key)
    return None if value is None else float(value)


def rows_in_window(run: Run) -> int | None:
    """Records that got their result within the measured time, all queries together.

    None for results that did not count them: their `rows` go on after CPU and time have ended, and what is divided by
    them cannot be held beside newer figures.
    """
    counted = [query.get("rows_in_window") for query in run["queries"].values()]
    return None if None in counted else sum(counted)


def cpu_s_per_million(run: Run) -> float | None:
    """CPU seconds for a million finished records, all queries together, both within the measured time.

    At the calibration's speed of the machine: on slower cores the same work takes more CPU seconds.
    """
    rows = rows_in_window(run)
    return run["cpu_s"] / slowness(run) / rows * 1e6 if rows else None


def slowness(run: Run) -> float:
    """Of the machine while the run was measured; 1 for results that did not look."""
    return float(run.get("slowness") or 1.0)


def rows_per_s(run: Run) -> float | None:
    """Finished records per second, all queries together, within the measured time."""
    rows = rows_in_window(run)
    return rows / run["measured_s"] if rows is not None and run.get("measured_s") else None


def rows_per_busy_s(run: Run, query: str) -> float | None:
    """Records per second while a batch runs: Q-Spark's throughput."""
    found = run["queries"].get(query, {})
    return found["rows"] / found["busy_s"] if found.get("busy_s") else None


def figure_of(run: Run, query: str, metric: str, *, lenient: bool = False) -> float:
    """Any figure of a query by its name; latencies of broken-down runs are infinite unless `lenient`."""
    if metric == "violation_rate":
        return violation_rate(run, query)
    if metric == "rows_per_busy_s":
        return rows_per_busy_s(run, query) or 0.0
    if metric == "rows_per_s":
        return float(run["queries"].get(query, {}).get(metric) or 0.0)
    return (seen_latency_s if lenient else latency_s)(run, query, metric)


def quantile_s(cdf: Cdf, share: float) -> float | None:
    """The latency that `share` of the records (or batches) stay within."""
    return next((float(latency) for latency, reached in cdf if reached >= share - 1e-9), None)


def pooled(cdfs: Iterable[Cdf]) -> list[tuple[float, float]]:
    """Several repeats as one CDF, each with the same weight; one that finished nothing keeps it below one."""
    repeats = list(cdfs)
    kept = [np.asarray(cdf, dtype=float) for cdf in repeats if len(cdf)]
    if not kept:
        return []
    latencies = np.concatenate([cdf[:, 0] for cdf in kept])
    steps = np.concatenate([np.diff(cdf[:, 1], prepend=0.0) for cdf in kept]) / len(repeats)
    order = np.argsort(latencies, kind="stable")
    return list(zip(latencies[order].tolist(), np.cumsum(steps[order]).tolist(), strict=True))


def median_of_all_s(run: Run) -> float:
    """The median latency of all records, whichever query they belong to; every query gets as many."""
    median_s = quantile_s(pooled(query.get("cdf") or [] for query in run["queries"].values()), 0.5)
    return math.inf if median_s is None or run.get("aborted") else median_s


def contenders(results: Results, among: Iterable[str] | None = None) -> list[str]:
    """Names in the order they are always listed."""
    names = set(results.get("contenders") or {}) if among is None else set(among)
    known = [name for name in ORDER if name in names]
    return known + sorted(names - set(known))


def title_of(results: Results, contender: str) -> str:
    return str((results.get("contenders") or {}).get(contender, {}).get("title") or contender)


def kind_of(results: Results, contender: str) -> str:
    """headgate, stock or paper; the papers' own rules are `paper` even though Headgate carries them out."""
    if contender.startswith(("zstream", "qspark")):
        return "paper"
    return str((results.get("contenders") or {}).get(contender, {}).get("kind") or "stock")


def papers_cells(results: Results) -> list[Run]:
    """The runs that repeat the papers' evaluation: equal deadlines, a random rate each second."""
    runs = runs_of(results, parts=["cells"])
    return [run for run in runs if run["scenario"].startswith("equal-") and run["scenario"].endswith("-u")]


def module_runs(results: Results) -> list[Run]:
    """Admission and scheduling each alone, and beside them both and neither as the papers' cells have measured them."""
    alone = runs_of(results, parts=["modules"])
    there = {(run["scenario"], run["contender"], round(run["load"], 3), run["repeat"]) for run in alone}
    places = {(scenario, load) for scenario, _, load, _ in there}
    beside = [
        {**run, "part": "modules"}
        for run in runs_of(results, parts=["cells"])
        if run["contender"] in WITH_AND_WITHOUT
        and (run["scenario"], round(run["load"], 3)) in places
        and (run["scenario"], run["contender"], round(run["load"], 3), run["repeat"]) not in there
    ]
    return alone + beside


def share_of_machine(run: Run) -> float:
    """The load that was asked for; where that was a rate, what it was of this machine."""
    return float(run["load_met"] if is_rate(run["load"]) else run["load"])


def traffic_loads(results: Results) -> dict[str, float]:
    """Low and high traffic of the papers' cells: their own rates.

    Where none was measured, the lowest and the highest load stand for them; one alone is high.
    """
    measured = {round(run["load"], 3) for run in papers_cells(results)}
    loads = sorted(filter(is_rate, measured)) or sorted(measured)
    return ({"low": loads[0]} if len(loads) > 1 else {}) | ({"high": loads[-1]} if loads else {})
