"""The targets table: what was to be reached, what was found, and from which runs.

Ratios are made per repeat, of runs of the same repeat (they ran one soon after the other, so both saw the same
machine), and the median over repeats is what counts. An aborted run of Headgate is infinitely late; an aborted run of
the contender it is compared with counts with what it did finish, which flatters that one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

from headgate.bench.linear_road import lookup
from headgate.bench.linear_road.lookup import OURS, TRIGGER_0, Results, Run
from headgate.bench.report.target import Reduce, Sample, Target, geometric_mean, make_target, ratio

CAPACITY_MIXED_BURSTY, CAPACITY_MIXED_U, CAPACITY_EQUAL = 1.5, 1.2, 1.15
VIOLATIONS_UP_TO_LOAD, VIOLATIONS = 0.7, 0.01
P95_AGAINST_STOCK = 0.5
MEDIAN_LOAD, MEDIAN_AGAINST_TRIGGER_0, CPU_AGAINST_TRIGGER_0 = 0.5, 1.0, 0.6
SATURATION_AGAINST_STOCK = 0.95
LIMIT_LOAD, POINTS_ABOVE_LIMIT = 0.8, 0.02


def targets(results: Results) -> list[Target]:
    """Every target, in the order of their weight; those that were not measured too."""
    return [
        *_capacities(results),
        _violations(results),
        *_tails(results),
        *_medians(results),
        _cpu(results),
        _saturation(results),
        _above_limit(results),
    ]


def _capacities(results: Results) -> list[Target]:
    measured = {entry["scenario"] for entry in results.get("capacity") or []}
    equal = sorted(name for name in {*measured, *(results.get("scenarios") or {})} if name.startswith("equal-"))
    rows = [
        _capacity(results, "mixed-bursty", CAPACITY_MIXED_BURSTY),
        _capacity(results, "mixed-u", CAPACITY_MIXED_U),
        *(_capacity(results, name, CAPACITY_EQUAL) for name in equal if name in measured),
    ]
    if left := [name for name in equal if name not in measured] or ([] if equal else ["equal deadlines"]):
        rows.append(
            Target(
                f"SLO capacity over that of the best static setting, {', '.join(left)}", CAPACITY_EQUAL, True, "ratio"
            )
        )
    return rows


def _capacity(results: Results, scenario: str, bound: float) -> Target:
    measure = f"SLO capacity over that of the best static setting, {scenario}"
    theirs = (results.get("best_static") or {}).get(scenario)
    loads = capacities(results, scenario)
    if theirs is None:
        return Target(measure, bound, True, "ratio", note="no best static trigger was looked for")
    samples = [
        Sample(repeat, ratio(load, loads[theirs][repeat]), f"repeat {repeat}")
        for repeat, load in loads.get(OURS, {}).items()
        if repeat in loads.get(theirs, {}) and (load or loads[theirs][repeat])
    ]
    made_from = f"{OURS} and {theirs}, {scenario}"
    return make_target(measure, bound, True, "ratio", samples, median, made_from, _better_stock(results, loads, theirs))


def capacities(results: Results, scenario: str) -> dict[str, dict[int, float]]:
    """The highest load with kept promises, by contender and repeat."""
    found: dict[str, dict[int, float]] = {}
    for entry in results.get("capacity") or []:
        if entry["scenario"] == scenario:
            found.setdefault(entry["contender"], {})[entry["repeat"]] = float(entry["load"])
    return found


def _better_stock(results: Results, loads: dict[str, dict[int, float]], best: str) -> str:
    """The sweep names the best static trigger before capacities are measured: it may have been wrong."""
    medians = {name: median(found.values()) for name, found in loads.items()}
    better = [
        name
        for name, load in medians.items()
        if lookup.kind_of(results, name) == "stock" and load > medians.get(best, 0.0)
    ]
    return f"but {', '.join(better)} got further than {best}" if better and best in medians else ""


def _violations(results: Results) -> Target:
    runs = [
        run
        for run in lookup.runs_of(results, parts=lookup.ALL_CORES, contender=OURS)
        if run["load"] < VIOLATIONS_UP_TO_LOAD + 0.005
    ]
    samples = [
        Sample(run["repeat"], lookup.violation_rate(run, query), _where(run, query))
        for run in runs
        for query in run["queries"]
    ]
    measure = f"Late records at loads up to {VIOLATIONS_UP_TO_LOAD}, worst query"
    kept = sum(sample.value <= VIOLATIONS for sample in samples)
    note = f"{kept} of {len(samples)} (run, query) pairs are within 1 %" if samples else ""
    return make_target(measure, VIOLATIONS, False, "share", samples, max, _parts(runs), note)


def _tails(results: Results) -> list[Target]:
    rows = []
    for theirs in ("sb-fifo", "sb-fair"):
        samples, made_from = _latency_ratios(lookup.papers_cells(results), theirs, "batch_max_p95_s")
        measure = f"p95 of the maximum latency per batch in the papers’ cells, over {theirs}"
        for reduce, what in ((median, "median cell"), (max, "worst cell")):
            rows.append(
                make_target(f"{measure}, {what}", P95_AGAINST_STOCK, False, "ratio", samples, reduce, made_from)
            )
    return rows


def _medians(results: Results) -> list[Target]:
    runs = lookup.runs_of(results, parts=lookup.ALL_CORES, load=MEDIAN_LOAD)
    samples, made_from = _latency_ratios(runs, TRIGGER_0, "p50_s")
    measure = f"Median latency at load {MEDIAN_LOAD}, over {TRIGGER_0}"
    ways: tuple[tuple[Reduce, str], ...] = ((geometric_mean, "geometric mean"), (max, "worst query"))
    return [
        make_target(f"{measure}, {what}", MEDIAN_AGAINST_TRIGGER_0, False, "ratio", samples, reduce, made_from)
        for reduce, what in ways
    ]


def _cpu(results: Results) -> Target:
    runs = lookup.runs_of(results, parts=lookup.ALL_CORES, load=MEDIAN_LOAD)
    used = list(lookup.pairs(runs, OURS, TRIGGER_0))
    samples = [
        Sample(ours["repeat"], ratio(cost, their_cost), _where(ours))
        for ours, theirs in used
        if (cost := lookup.cpu_s_per_million(ours)) is not None
        and (their_cost := lookup.cpu_s_per_million(theirs)) is not None
    ]
    measure = f"CPU seconds per million records at load {MEDIAN_LOAD}, over {TRIGGER_0}, geometric mean"
    made_from = _parts([run for pair in used for run in pair])
    return make_target(measure, CPU_AGAINST_TRIGGER_0, False, "ratio", samples, geometric_mean, made_from)


def _saturation(results: Results) -> Target:
    found = {(entry["contender"], entry["repeat"]): entry["rows_per_s"] for entry in results.get("saturation") or []}
    samples = [
        Sample(repeat, ratio(rows, found[TRIGGER_0, repeat]), f"repeat {repeat}")
        for (contender, repeat), rows in found.items()
        if contender == OURS and (TRIGGER_0, repeat) in found
    ]
    measure = f"Throughput at saturation, over {TRIGGER_0}"
    return make_target(
        measure, SATURATION_AGAINST_STOCK, True, "ratio", samples, median, f"{OURS} and {TRIGGER_0}, saturated"
    )


def _above_limit(results: Results) -> Target:
    limits = {
        entry["scenario"]: entry["violation_rates"]
        for entry in results.get("limit") or []
        if lookup.same_load(entry["load"], LIMIT_LOAD)
    }
    runs = lookup.runs_of(results, parts=lookup.ALL_CORES, contender=OURS, load=LIMIT_LOAD)
    used = [run for run in runs if run["scenario"] in limits]
    samples = [
        Sample(run["repeat"], lookup.violation_rate(run, query) - limits[run["scenario"]][query], _where(run, query))
        for run in used
        for query in run["queries"]
        if query in limits[run["scenario"]]
    ]
    measure = f"Late records at load {LIMIT_LOAD} above the clairvoyant limit, worst query"
    return make_target(measure, POINTS_ABOVE_LIMIT, False, "points", samples, max, _parts(used))


def _latency_ratios(runs: Sequence[Run], theirs: str, key: str) -> tuple[list[Sample], str]:
    """Headgate's latency over another contender's, per query; nothing where the other finished nothing."""
    used = list(lookup.pairs(runs, OURS, theirs))
    samples = [
        Sample(mine["repeat"], lookup.latency_s(mine, query, key) / their_s, _where(mine, query))
        for mine, other in used
        for query in mine["queries"]
        if math.isfinite(their_s := lookup.seen_latency_s(other, query, key)) and their_s > 0
    ]
    return samples, _parts([run for pair in used for run in pair])


def _where(run: Run, query: str | None = None) -> str:
    place = f"{run['scenario']}, load {run['load']:g}, repeat {run['repeat']}"
    return place if query is None else f"{query}, {place}"


def _parts(runs: Sequence[Run]) -> str:
    """Which runs, in a few words."""
    parts = ", ".join(dict.fromkeys(run["part"] for run in runs))
    scenarios = ", ".join(dict.fromkeys(run["scenario"] for run in runs))
    repeats = len({run["repeat"] for run in runs})
    return f"{parts}: {scenarios}; {len(runs)} runs, {repeats} repeat{'s'[: repeats != 1]}" if runs else ""
