"""The clairvoyant scheduler on the measured costs and on the very traffic that the contenders had."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import mean
from typing import Any

from headgate.bench.clairvoyant import ClairvoyantQuery, capacity, limit
from headgate.bench.linear_road.scenarios import Scenario, Window, find_scenario
from headgate.core.arrivals import IntArray
from headgate.core.traffic import Shape, Traffic, parse_traffic

BELOW, ABOVE = 0.7, 2.0
"""Where the clairvoyant scheduler's own capacity is looked for, as shares of the highest one that was measured: a probe
of the simulation takes seconds."""


@dataclass(frozen=True, slots=True)
class Ending:
    """A shape that ends with the measured window: what comes later is not judged, and need not be served first."""

    shape: Shape
    seconds: int

    @property
    def mean_rate(self) -> float:
        return self.shape.mean_rate

    def counts(self, second: int, seconds: int) -> IntArray:
        counts = self.shape.counts(second, seconds).copy()
        counts[max(0, self.seconds - second) :] = 0
        return counts

    def scaled(self, factor: float) -> Ending:
        return Ending(self.shape.scaled(factor), self.seconds)


def limit_entry(
    scenario: Scenario, load: float, rate: float, windows: dict[int, Window], costs: dict[str, Any]
) -> dict[str, Any]:
    """The late share of each query: the mean over the repeats' traffic, and each repeat's own."""
    by_repeat = {repeat: _rates(scenario, rate, window, costs) for repeat, window in sorted(windows.items())}
    rates = {name: mean(found[name] for found in by_repeat.values()) for name in scenario.deadlines_s}
    return {
        "scenario": scenario.name, "load": load, "violation_rates": rates,
        "repeats": list(by_repeat), "by_repeat": list(by_repeat.values()),
    }  # fmt: skip


def _rates(scenario: Scenario, rate: float, window: Window, costs: dict[str, Any]) -> dict[str, float]:
    queries = clairvoyant_queries(scenario, rate, window, costs)
    return limit(queries, _end_s(scenario, window), skip_s=window.begin_s)


def capacity_limit(
    scenario: Scenario, rate_at: Callable[[float], float], window: Window, costs: dict[str, Any], measured: float
) -> float:
    """The highest load whose traffic the clairvoyant scheduler serves in time; `measured` is where others ended."""

    def queries_at(load: float) -> list[ClairvoyantQuery]:
        return clairvoyant_queries(scenario, rate_at(load), window, costs)

    low, high = BELOW * measured, ABOVE * measured
    return capacity(queries_at, _end_s(scenario, window), low, high, skip_s=window.begin_s)


def _end_s(scenario: Scenario, window: Window) -> float:
    """When the last record of the window is late at the latest."""
    return window.end_s + max(scenario.deadlines_s.values()) + 1


def clairvoyant_queries(
    scenario: Scenario, rate: float, window: Window, costs: dict[str, Any]
) -> list[ClairvoyantQuery]:
    """The scenario's promises with the costs of its queries and what arrives until the end of the window."""
    return [
        ClairvoyantQuery(
            query.name, query.deadline_s, costs[query.name]["fixed_s"], costs[query.name]["per_row_s"],
            Traffic(Ending(parse_traffic(query.rate, window.seed).shape, math.ceil(window.end_s))),
        )
        for query in scenario.queries(rate, window)
    ]  # fmt: skip


def add_limits(data: dict[str, Any], cores: int, entry_of: Callable[[str, float, list[int]], dict[str, Any]]) -> None:
    """An entry for every scenario and load of the runs on all cores; made again when repeats have been added."""
    repeats: dict[tuple[str, float], set[int]] = {}
    for run in data["runs"]:
        if run["cores"] == cores and all(name in data["calibration"]["queries"] for name in run["queries"]):
            repeats.setdefault((run["scenario"], run["load"]), set()).add(run["repeat"])
    known = {(entry["scenario"], entry["load"]): entry.get("repeats") for entry in data["limit"]}
    for (name, load), found in sorted(repeats.items()):
        if known.get((name, load)) != sorted(found):
            others = [entry for entry in data["limit"] if (entry["scenario"], entry["load"]) != (name, load)]
            data["limit"] = [*others, entry_of(name, load, sorted(found))]


def add_capacity_limits(data: dict[str, Any], load_of: Callable[[str, int, float], float]) -> None:
    """The clairvoyant scheduler's own capacity beside every one that was searched for, with the same traffic."""
    known = {(entry["scenario"], entry["repeat"]) for entry in data.setdefault("capacity_limit", [])}
    searched: dict[tuple[str, int], float] = {}
    for entry in data["capacity"]:
        place = entry["scenario"], entry["repeat"]
        searched[place] = max(searched.get(place, 0.0), entry["load"])
    for (name, repeat), measured in searched.items():
        costs_known = all(query in data["calibration"]["queries"] for query in find_scenario(name).deadlines_s)
        if measured and costs_known and (name, repeat) not in known:
            entry = {"scenario": name, "repeat": repeat, "load": load_of(name, repeat, measured)}
            data["capacity_limit"].append(entry)
