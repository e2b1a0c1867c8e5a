"""Our own runs held beside a paper's claim, in a few words."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from statistics import median
from typing import NamedTuple

from headgate.bench.linear_road import lookup
from headgate.bench.linear_road.claims import Claim
from headgate.bench.linear_road.lookup import Results, Run, figure_of
from headgate.bench.report import text

NOT_MEASURED = "not measured"

Place = tuple[str, float, int]
"""Scenario, load and repeat."""


class Answer(NamedTuple):
    """The figure, and how far it holds."""

    found: str
    detail: str = ""


def answer(results: Results, claim: Claim, contender: str) -> Answer:
    """What our runs of `contender` say about the claim; a dash if there is no such contender."""
    if not contender:
        return Answer(text.NOTHING)
    if claim.against == "lowest":
        return _lowest(results, claim, contender)
    ratios = _over_cores(results, claim, contender) if claim.against == "cores" else _ratios(results, claim, contender)
    if not ratios:
        return Answer(NOT_MEASURED)
    form = text.times if claim.against == "deadline" else text.change
    spread = f"{form(min(ratios))} … {form(max(ratios))} in {len(ratios)} cells" if len(ratios) > 1 else ""
    return Answer(form(median(ratios)), "; ".join(filter(None, [spread, *_caveats(results, claim, contender)])))


def _caveats(results: Results, claim: Claim, contender: str) -> Iterator[str]:
    """What makes a figure another one than its name says."""
    judged = {contender, claim.against}
    used = [(run, query) for run in _runs(results, claim) if run["contender"] in judged for query in claim.queries]
    if claim.metric == "batch_max_p95_s" and any(lookup.few_batches(run, query) for run, query in used):
        yield f"the maximum where a run has fewer than {lookup.FEW_BATCHES} batches"
    if any(run["contender"] == claim.against and lookup.only_at_least(run, query, claim.metric) for run, query in used):
        yield f"{claim.against} beyond the end counts with the least it waited"


def _ratios(results: Results, claim: Claim, contender: str) -> list[float]:
    """One per scenario, load and query: the median over repeats of `contender` over what it is compared with."""
    found: dict[tuple[str, float, str], list[float]] = {}
    runs = _runs(results, claim)
    twins = [(run, run) for run in runs if run["contender"] == contender]
    for mine, other in twins if claim.against == "deadline" else lookup.pairs(runs, contender, claim.against):
        for query in claim.queries:
            base = other["queries"].get(query, {}).get("deadline_s") or 0.0
            if claim.against != "deadline":
                base = figure_of(other, query, claim.metric, lenient=True)
            if query in mine["queries"] and math.isfinite(base) and base > 0:
                key = (mine["scenario"], mine["load"], query)
                found.setdefault(key, []).append(figure_of(mine, query, claim.metric) / base)
    return [median(values) for values in found.values()]


def _over_cores(results: Results, claim: Claim, contender: str) -> list[float]:
    """The figure with the most cores over that with the fewest, per query; same scenario and load."""
    places: dict[tuple[str, float, str], dict[int, list[float]]] = {}
    for run in _runs(results, claim):
        for query in claim.queries if run["contender"] == contender else ():
            cores = places.setdefault((run["scenario"], run["load"], query), {})
            cores.setdefault(run["cores"], []).append(figure_of(run, query, claim.metric))
    medians = [{count: median(values) for count, values in cores.items()} for cores in places.values()]
    ends = [(found[max(found)], found[min(found)]) for found in medians if len(found) > 1]
    return [most / fewest for most, fewest in ends if math.isfinite(fewest) and fewest > 0]


def _lowest(results: Results, claim: Claim, contender: str) -> Answer:
    """In how many (run, query) pairs no stock contender of the same cell and repeat was late with less."""
    peers = _stock_runs(results)
    judged = [
        (_is_lowest(run, peers[_place(run)], query), peers[_place(run)])
        for run in _runs(results, claim)
        if run["contender"] == contender and _place(run) in peers
        for query in claim.queries
    ]
    if not judged:
        return Answer(NOT_MEASURED)
    times = Counter(name for _, found in judged for name in found)
    names = [
        name if times[name] == len(judged) else f"{name} ({times[name]})" for name in lookup.contenders(results, times)
    ]
    return Answer(f"{sum(lowest for lowest, _ in judged)} of {len(judged)}", f"lowest or equal of {', '.join(names)}")


def _stock_runs(results: Results) -> dict[Place, dict[str, Run]]:
    """All that stock Spark did with the whole machine, whichever part of the benchmark asked for it."""
    found: dict[Place, dict[str, Run]] = {}
    for run in lookup.runs_of(results, parts=lookup.ALL_CORES):
        if lookup.kind_of(results, run["contender"]) == "stock":
            found.setdefault(_place(run), {})[run["contender"]] = run
    return found


def _place(run: Run) -> Place:
    return run["scenario"], round(run["load"], 3), run["repeat"]


def _is_lowest(mine: Run, stock: Mapping[str, Run], query: str) -> bool:
    rate = lookup.violation_rate(mine, query)
    return all(rate <= lookup.violation_rate(run, query) for run in stock.values())


def _runs(results: Results, claim: Claim) -> Sequence[Run]:
    if claim.part == "cells":
        runs: Sequence[Run] = lookup.papers_cells(results)
    elif claim.part == "modules":
        runs = lookup.module_runs(results)
    else:
        runs = lookup.runs_of(results, parts=[claim.part])
    runs = [run for run in runs if fnmatchcase(run["scenario"], claim.scenario)]
    if claim.traffic == "any":
        return runs
    load = lookup.traffic_loads(results).get(claim.traffic)
    return [run for run in runs if load is not None and lookup.same_load(run["load"], load)]
