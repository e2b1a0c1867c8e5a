"""The targets table: what was to be reached, what was found, and from which runs.

Ratios are made per repeat, of runs of the same repeat (same traffic; the order of the contenders changes with the
repeat, so that none always has the machine first), and the median over repeats is what counts. An aborted run of
Headgate is infinitely late, and so is a figure that lies among records without a result; the contender it is compared
with counts with what it did finish and the rest with the least that it waited, which flatters that one and is marked.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from headgate.bench.linear_road import lookup
from headgate.bench.linear_road.load import is_rate, load_text
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
    notes = [_better_stock(results, loads, theirs), _clairvoyant_ratio(results, scenario, loads.get(theirs, {}))]
    return make_target(measure, bound, True, "ratio", samples, median, made_from, "; ".join(filter(None, notes)))


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


def _clairvoyant_ratio(results: Results, scenario: str, theirs: Mapping[int, float]) -> str:
    """How far a scheduler that knows everything beforehand gets with the schedules that its search tries."""
    ratios = [
        entry["load"] / theirs[entry["repeat"]]
        for entry in results.get("capacity_limit") or []
        if entry["scenario"] == scenario and theirs.get(entry["repeat"])
    ]
    return f"a clairvoyant scheduler, simulated: {median(ratios):.2f}" if ratios else ""


def _violations(results: Results) -> Target:
    runs = [
        run
        for run in lookup.runs_of(results, parts=lookup.ALL_CORES, contender=OURS)
        if lookup.share_of_machine(run) < VIOLATIONS_UP_TO_LOAD + 0.005
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
    """At the papers' own rates, and under the same promises at loads of this machine, where that was measured."""
    runs = lookup.papers_cells(results)
    kinds = [[run for run in runs if is_rate(run["load"]) is rate] for rate in (True, False)]
    return [
        row
        for found in [kind for kind in kinds if kind] or [[]]
        for theirs in ("sb-fifo", "sb-fair")
        for row in _tail(found, theirs)
    ]


def _tail(runs: Sequence[Run], theirs: str) -> list[Target]:
    samples, made_from, note = _latency_ratios(runs, theirs, "batch_max_p95_s")
    at = ", ".join(dict.fromkeys(load_text(run["load"]) for run in runs))
    measure = f"p95 of the maximum latency per batch in the papers’ cells{f' at {at}' if at else ''}, over {theirs}"
    return [
        make_target(f"{measure}, {what}", P95_AGAINST_STOCK, False, "ratio", samples, reduce, made_from, note)
        for reduce, what in ((median, "median cell"), (max, "worst cell"))
    ]


def _medians(results: Results) -> list[Target]:
    runs = lookup.runs_of(results, parts=lookup.ALL_CORES, load=MEDIAN_LOAD)
    samples, made_from, note = _latency_ratios(runs, TRIGGER_0, "p50_s")
    measure = f"Median latency at load {MEDIAN_LOAD}, over {TRIGGER_0}"
    together = [
        Sample(mine["repeat"], lookup.median_of_all_s(mine) / their_s, _where(mine))
        for mine, other in lookup.pairs(runs, OURS, TRIGGER_0)
        if 0 < (their_s := lookup.median_of_all_s(other)) < math.inf
    ]
    ways: tuple[tuple[str, list[Sample], Reduce], ...] = (
        ("of all records together", together, geometric_mean),
        ("of each query, geometric mean", samples, geometric_mean),
        ("of each query, worst", samples, max),
    )
    return [
        make_target(f"{measure}, {what}", MEDIAN_AGAINST_TRIGGER_0, False, "ratio", found, reduce, made_from, note)
        for what, found, reduce in ways
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
        entry["scenario"]: entry for entry in results.get("limit") or [] if lookup.same_load(entry["load"], LIMIT_LOAD)
    }
    runs = lookup.runs_of(results, parts=lookup.ALL_CORES, contender=OURS, load=LIMIT_LOAD)
    used = [run for run in runs if run["scenario"] in limits]
    samples = [
        Sample(run["repeat"], lookup.violation_rate(run, query) - unavoidable[query], _where(run, query))
        for run in used
        for unavoidable in [_limit_of(limits[run["scenario"]], run["repeat"])]
        for query in run["queries"]
        if query in unavoidable
    ]
    measure = f"Late records at load {LIMIT_LOAD} above the clairvoyant limit, worst query"
    return make_target(measure, POINTS_ABOVE_LIMIT, False, "points", samples, max, _parts(used))


def _limit_of(entry: Mapping[str, Any], repeat: int) -> Mapping[str, float]:
    """What no scheduler could have served in time: of the repeat's own traffic, where that is known."""
    own = dict(zip(entry.get("repeats") or [], entry.get("by_repeat") or [], strict=True))
    found: Mapping[str, float] = own.get(repeat, entry["violation_rates"])
    return found


def _latency_ratios(runs: Sequence[Run], theirs: str, key: str) -> tuple[list[Sample], str, str]:
    """Headgate's latency over another contender's, per query, from which runs, and what to know about it.

    Nothing is compared with a query that finished nothing.
    """
    used = list(lookup.pairs(runs, OURS, theirs))
    compared = [
        (mine, other, query)
        for mine, other in used
        for query in mine["queries"]
        if 0 < lookup.seen_latency_s(other, query, key) < math.inf
    ]
    samples = [
        Sample(
            mine["repeat"],
            lookup.latency_s(mine, query, key) / lookup.seen_latency_s(other, query, key),
            _where(mine, query),
        )
        for mine, other, query in compared
    ]
    return samples, _parts([run for pair in used for run in pair]), _caveats(compared, theirs, key)


def _caveats(compared: Sequence[tuple[Run, Run, str]], theirs: str, key: str) -> str:
    """What the reader of a ratio of latencies must know."""
    beyond = sum(lookup.only_at_least(other, query, key) for _, other, query in compared)
    few = sum(
        any(lookup.few_batches(run, query) for run in pair) for *pair, query in compared if key == "batch_max_p95_s"
    )
    notes = [
        f"{theirs} lies beyond the end in {beyond} of {len(compared)}: counted with the least it waited"
        if beyond
        else "",
        f"the maximum, not the p95, in {few} of {len(compared)}: fewer than {lookup.FEW_BATCHES} batches"
        if few
        else "",
    ]
    return "; ".join(filter(None, notes))


def _where(run: Run, query: str | None = None) -> str:
    place = f"{run['scenario']}, {load_text(run['load'])}, repeat {run['repeat']}"
    return place if query is None else f"{query}, {place}"


def _parts(runs: Sequence[Run]) -> str:
    """Which runs, in a few words."""
    parts = ", ".join(dict.fromkeys(run["part"] for run in runs))
    scenarios = ", ".join(dict.fromkeys(run["scenario"] for run in runs))
    repeats = len({run["repeat"] for run in runs})
    return f"{parts}: {scenarios}; {len(runs)} runs, {repeats} repeat{'s'[: repeats != 1]}" if runs else ""
