"""What an expert would choose: the fixed triggers and the scheduler with the highest SLO capacity, per scenario."""

from __future__ import annotations

import math
from statistics import median
from typing import Any

from headgate.bench.linear_road.programmes import Programme
from headgate.bench.linear_road.runner import Runner
from headgate.bench.linear_road.scenarios import SCENARIOS, find_contender
from headgate.bench.linear_road.search import CapacitySearch
from headgate.bench.plan import Contender

START, STRIDE = 0.45, 1.35
"""A coarse search: it need only find the candidates, which are searched again, finely, turn by turn with ours."""

CANDIDATES = 2
"""At most so many settings of a scenario are searched finely: those within one stride of the best, which a noisy probe
may have put in the wrong order. Three would cost hours."""

FURTHER_SHARE = 0.6
"""Of the settings, about so many are worth trying in further scenarios of the same queries: for the forecast."""

WORTH_TRYING = 0.65
"""A setting that carried less than this share of the best one's load is not tried again in other scenarios of the same
queries. A guess that saves hours: one that is far behind in one scenario should not win in another."""


def sweep(runner: Runner) -> None:
    """Find the candidates for the best static setting of every scenario that needs one and has none yet."""
    data, programme = runner.store.data, runner.programme
    missing = _missing(data, programme)
    first = [name for name in missing if _first_of_its_queries(name, programme)]
    for scenarios in (first, [name for name in missing if name not in first]):
        _try(runner, [(name, setting) for name in scenarios for setting in _untried(data, programme, name)])
        for scenario in scenarios:
            found = _ranked(data, scenario)
            data.setdefault("static_candidates", {})[scenario] = found
            data["best_static"][scenario] = found[0]
            runner.say(f"best static setting for {scenario}: {' or '.join(find_contender(n).title for n in found)}")
            runner.store.save()


def candidates(data: dict[str, Any], programme: Programme, scenario: str) -> list[str]:
    """The settings that stand for the best static one until the fine searches have decided."""
    found = data.get("static_candidates", {}).get(scenario)
    if found is None and scenario in data["best_static"]:
        found = [data["best_static"][scenario]]  # chosen by hand
    if found is None:  # before the sweep, for a forecast: any settings will do
        found = programme.sweep[-CANDIDATES:] if scenario in programme.needs_sweep else []
    return list(found)


def decide(data: dict[str, Any], scenario: str) -> None:
    """Name the best candidate by the median of its fine searches, once all of them have been searched."""
    found = data.get("static_candidates", {}).get(scenario, [])
    loads = {name: _fine_loads(data, scenario, name) for name in found}
    if loads and all(loads.values()):
        data["best_static"][scenario] = max(found, key=lambda name: median(loads[name]))


def _fine_loads(data: dict[str, Any], scenario: str, contender: str) -> list[float]:
    entries = [entry for entry in data["capacity"] if entry["scenario"] == scenario]
    return [float(entry["load"]) for entry in entries if entry["contender"] == contender]


def tries_left(data: dict[str, Any], programme: Programme) -> float:
    """How many searches a sweep still has to make, about."""
    return sum(
        len(_untried(data, programme, name)) * (1.0 if _all_tried(data, programme, name) else FURTHER_SHARE)
        for name in _missing(data, programme)
    )


def sessions_left(data: dict[str, Any], programme: Programme) -> int:
    """How many applications these searches need, about: one per kind of session for first and for further scenarios."""
    missing = _missing(data, programme)
    first = [name for name in missing if _first_of_its_queries(name, programme)]
    kinds = [
        {_session(find_contender(setting)) for name in names for setting in _untried(data, programme, name)}
        for names in (first, [name for name in missing if name not in first])
    ]
    return sum(len(kind) for kind in kinds)


def _all_tried(data: dict[str, Any], programme: Programme, scenario: str) -> bool:
    """Whether all settings are tried, or those worth it are known already."""
    return _first_of_its_queries(scenario, programme) or _known(data, scenario) is not None


def _missing(data: dict[str, Any], programme: Programme) -> list[str]:
    return [name for name in programme.needs_sweep if name not in data["best_static"]]


def _first_of_its_queries(scenario: str, programme: Programme) -> bool:
    return scenario == next(name for name in programme.needs_sweep if _same_queries(name, scenario))


def _same_queries(one: str, other: str) -> bool:
    return SCENARIOS[one].query_set == SCENARIOS[other].query_set


def _untried(data: dict[str, Any], programme: Programme, scenario: str) -> list[str]:
    """All settings for the first scenario of some queries, those that came near its best for the others."""
    names = programme.sweep
    known = _known(data, scenario)
    if known is not None and (loads := _loads(data, known)):
        names = tuple(name for name in names if loads.get(name, math.inf) >= WORTH_TRYING * max(loads.values()))
    return [name for name in names if name not in _loads(data, scenario)]


def _known(data: dict[str, Any], scenario: str) -> str | None:
    """Another scenario of the same queries whose best setting is known."""
    return next((name for name in data["best_static"] if name != scenario and _same_queries(name, scenario)), None)


def _loads(data: dict[str, Any], scenario: str) -> dict[str, float]:
    return {entry["contender"]: entry["load"] for entry in data["sweep"] if entry["scenario"] == scenario}


def _try(runner: Runner, todo: list[tuple[str, str]]) -> None:
    """All triggers of one kind of session in one application: a trigger belongs to a query, not to Spark."""
    searches = [(scenario, find_contender(name)) for scenario, name in todo]
    for session in dict.fromkeys(_session(setting) for _, setting in searches):
        _try_triggers(runner, [search for search in searches if _session(search[1]) == session])


def _session(setting: Contender) -> tuple[str, bool]:
    """What belongs to an application rather than to a query."""
    return setting.mode, setting.plain_slots


def _ranked(data: dict[str, Any], scenario: str) -> list[str]:
    """The candidates, best first: the highest capacity; among equals the one that was least late there."""
    tried = [entry for entry in data["sweep"] if entry["scenario"] == scenario]
    ranked = sorted(tried, key=lambda entry: (-entry["load"], entry["worst_violation_rate"]))
    least = ranked[0]["load"] / (1.01 * STRIDE)
    return [str(entry["contender"]) for entry in ranked[:CANDIDATES] if entry["load"] >= least]


def _try_triggers(runner: Runner, todo: list[tuple[str, Contender]]) -> None:
    with runner.application(todo[0][1]) as app:
        runner.warm(app, SCENARIOS[todo[0][0]])
        for name, setting in todo:
            search = CapacitySearch(START, stride=STRIDE, precision=1.01 * STRIDE)
            probes = runner.search(app, SCENARIOS[name], search, "sweep", 0, setting)
            entry = {"scenario": name, "contender": setting.name, "load": search.capacity}
            late = late_at(probes, search.capacity)
            runner.store.append("sweep", entry | {"worst_violation_rate": late, "probes": probes})


def late_at(probes: list[dict[str, Any]], capacity: float) -> float:
    """The worst violation rate of the probe that is the capacity; of the lowest one if nothing was kept."""
    there = [probe for probe in probes if probe["load"] == capacity]
    return float((there or [min(probes, key=lambda probe: probe["load"])])[0]["worst_violation_rate"])
