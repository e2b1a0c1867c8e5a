"""What an expert would choose: the fixed triggers and the scheduler with the highest SLO capacity, per scenario.

A race: each setting begins at the highest load that another has kept. Who breaks it there is behind and out, who keeps
it goes on upwards. Where the queries are known from another scenario only the triggers are tried again: how long a
batch may wait depends on deadlines and traffic, but which scheduler and slots suit the queries does not.
"""

from __future__ import annotations

import math
from statistics import median
from typing import Any

from headgate.bench.linear_road.programmes import Programme
from headgate.bench.linear_road.runner import Runner
from headgate.bench.linear_road.scenarios import find_contender, find_scenario, same_queries
from headgate.bench.linear_road.search import CapacitySearch
from headgate.bench.plan import Contender

START, STRIDE = 0.45, 1.35
"""A coarse search: it need only find the candidates, which are searched again, finely, turn by turn with ours."""

CANDIDATES = 2
"""At most so many settings of a scenario are searched finely: those that kept the highest of the coarse loads."""

FAR_BEHIND = 1.15
"""A candidate this far behind another after the fine searches so far is not searched again: twice their precision."""

FIRST_PROBES, FURTHER_PROBES = 2.5, 0.8
"""Whole cells that a coarse search takes, about: of a scenario's first setting, and of one that most often breaks the
load that another has kept, and is cut short."""


def sweep(runner: Runner) -> None:
    """Find the candidates for the best static setting of every scenario that needs one and has none yet."""
    data, programme = runner.store.data, runner.programme
    missing = _missing(data, programme)
    first = [name for name in missing if _is_first(data, programme, name)]
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
    found = _in_question(data, scenario)
    if found is not None:
        return found
    if scenario in data["best_static"]:
        return [data["best_static"][scenario]]  # chosen by hand
    if scenario not in programme.needs_sweep:
        return []
    # Before the sweep, for a forecast: any will do, but the first takes part in other things, too.
    return list((programme.sweep[1:] or programme.sweep)[:CANDIDATES])


def _in_question(data: dict[str, Any], scenario: str) -> list[str] | None:
    """The sweep's candidates without those that fine searches have found far behind; None before the sweep."""
    found = data.get("static_candidates", {}).get(scenario)
    if found is None:
        return None
    searched = {name: median(loads) for name in found if (loads := _fine_loads(data, scenario, name))}
    bar = max(searched.values(), default=0.0) / FAR_BEHIND
    return [name for name in found if searched.get(name, bar) >= bar]


def decide(data: dict[str, Any], scenario: str) -> None:
    """Name the best candidate by the median of its fine searches, once all of them have been searched."""
    found = data.get("static_candidates", {}).get(scenario, [])
    loads = {name: _fine_loads(data, scenario, name) for name in found}
    if loads and all(loads.values()):
        data["best_static"][scenario] = max(found, key=lambda name: median(loads[name]))


def _fine_loads(data: dict[str, Any], scenario: str, contender: str) -> list[float]:
    entries = [entry for entry in data["capacity"] if entry["scenario"] == scenario]
    return [float(entry["load"]) for entry in entries if entry["contender"] == contender]


def probes_left(data: dict[str, Any], programme: Programme) -> float:
    """How many whole cells a sweep still takes, about."""
    untried = [(name, _untried(data, programme, name)) for name in _missing(data, programme)]
    firsts = sum(bool(settings) and not _loads(data, name) for name, settings in untried)
    tries = sum(len(settings) for _, settings in untried)
    return FIRST_PROBES * firsts + FURTHER_PROBES * (tries - firsts)


def sessions_left(data: dict[str, Any], programme: Programme) -> int:
    """How many applications these searches need, about: one per kind of session for first and for further scenarios."""
    missing = _missing(data, programme)
    first = [name for name in missing if _is_first(data, programme, name)]
    kinds = [
        {_session(find_contender(setting)) for name in names for setting in _untried(data, programme, name)}
        for names in (first, [name for name in missing if name not in first])
    ]
    return sum(len(kind) for kind in kinds)


def _missing(data: dict[str, Any], programme: Programme) -> list[str]:
    return [name for name in programme.needs_sweep if name not in data["best_static"]]


def _is_first(data: dict[str, Any], programme: Programme, scenario: str) -> bool:
    return scenario == _first_like(data, programme, scenario)


def _first_like(data: dict[str, Any], programme: Programme, scenario: str) -> str:
    """The scenario in which all settings are or were tried with the same queries."""
    names: list[str] = [*data.get("static_candidates", {}), *programme.needs_sweep]
    return next(name for name in names if same_queries(name, scenario))


def _untried(data: dict[str, Any], programme: Programme, scenario: str) -> list[str]:
    """All settings for the first scenario of some queries, those with the best one's kind of session for the others."""
    names = programme.sweep
    if not _is_first(data, programme, scenario):
        known = candidates(data, programme, _first_like(data, programme, scenario))
        sessions = {_session(find_contender(name)) for name in known}
        names = tuple(name for name in names if _session(find_contender(name)) in sessions)
    if not find_scenario(scenario).mixed:  # there is no tightest query
        names = tuple(name for name in names if find_contender(name).tight_share is None)
    return [name for name in names if name not in _loads(data, scenario)]


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
    """The candidates: those that kept the highest load, to half a step; the least late first."""
    tried = [entry for entry in data["sweep"] if entry["scenario"] == scenario]
    most = max(entry["load"] for entry in tried)
    kept = [entry for entry in tried if entry["load"] >= most / math.sqrt(STRIDE)]
    ranked = sorted(kept, key=lambda entry: float(entry["worst_violation_rate"]))
    return [str(entry["contender"]) for entry in ranked[:CANDIDATES]]


def _try_triggers(runner: Runner, todo: list[tuple[str, Contender]]) -> None:
    first = find_scenario(todo[0][0])
    with runner.application(todo[0][1]) as app:
        runner.warm(app, first)
        for name, setting in todo:
            bar = max(_loads(runner.store.data, name).values(), default=0.0) or None
            search = CapacitySearch(bar or START, stride=STRIDE, precision=STRIDE, bar=bar)
            probes = runner.search(app, find_scenario(name), search, "sweep", 0, setting)
            entry = {"scenario": name, "contender": setting.name, "load": search.kept, "below": search.broken}
            late = late_at(probes, search.kept)
            runner.store.append("sweep", entry | {"worst_violation_rate": late, "probes": probes})


def late_at(probes: list[dict[str, Any]], capacity: float) -> float:
    """The worst violation rate of the probe at the highest load kept; of the lowest one if nothing was."""
    there = [probe for probe in probes if probe["load"] == capacity]
    return float((there or [min(probes, key=lambda probe: probe["load"])])[0]["worst_violation_rate"])
