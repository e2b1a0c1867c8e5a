"""Our own runs held beside a paper's claim, in a few words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fnmatch import fnmatchcase
from statistics import median
from typing import NamedTuple

from headgate.bench.linear_road import lookup
from headgate.bench.linear_road.claims import Claim
from headgate.bench.linear_road.lookup import Results, Run, figure_of
from headgate.bench.report import text


class Answer(NamedTuple):
    """The figure, and how far it holds."""

    found: str
    detail: str = ""


def answer(results: Results, claim: Claim, contender: str) -> Answer:
    """What our runs of `contender` say about the claim, or a dash."""
    if not contender:
        return Answer(text.NOTHING)
    if claim.against == "lowest":
        return _lowest(results, claim, contender)
    ratios = _over_cores(results, claim, contender) if claim.against == "cores" else _ratios(results, claim, contender)
    if not ratios:
        return Answer(text.NOTHING)
    form = text.times if claim.against == "deadline" else text.change
    detail = f"{form(min(ratios))} … {form(max(ratios))} in {len(ratios)} cells" if len(ratios) > 1 else ""
    return Answer(form(median(ratios)), detail)


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
    cells: dict[tuple[str, float, int], dict[str, Run]] = {}
    for run in _runs(results, claim):
        cells.setdefault((run["scenario"], run["load"], run["repeat"]), {})[run["contender"]] = run
    judged = [
        _beats_stock(results, found, contender, query)
        for found in cells.values()
        for query in claim.queries
        if contender in found and any(lookup.kind_of(results, name) == "stock" for name in found)
    ]
    return Answer(f"{sum(judged)} of {len(judged)}", "lowest or equal") if judged else Answer(text.NOTHING)


def _beats_stock(results: Results, found: dict[str, Run], contender: str, query: str) -> bool:
    stock = [run for name, run in found.items() if lookup.kind_of(results, name) == "stock"]
    mine = lookup.violation_rate(found[contender], query)
    return all(mine <= lookup.violation_rate(run, query) for run in stock)


def _runs(results: Results, claim: Claim) -> Sequence[Run]:
    if claim.part == "cells":
        runs: Sequence[Run] = lookup.papers_cells(results)
    elif claim.part == "modules":
        runs = lookup.module_runs(results)
    else:
        runs = lookup.runs_of(results, parts=[claim.part])
    load = lookup.traffic_loads(results).get(claim.traffic)
    return [
        run
        for run in runs
        if fnmatchcase(run["scenario"], claim.scenario) and (load is None or lookup.same_load(run["load"], load))
    ]
