"""The benchmark's order of events: calibrate, sweep, then group after group of scenarios, repeat after repeat.

All run in one JVM, which is driven in once (another one where fewer cores are measured). Within a group every contender
gets a fresh Spark application, warms up until its batch times stop falling, and runs what is still missing; a group
that would keep one contender for too long is gone through twice. The next repeat does the same again in another order
and with other traffic: changes of the machine hit all alike.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from headgate.bench.application import Application
from headgate.bench.gauge import Gauge
from headgate.bench.linear_road import calibration
from headgate.bench.linear_road.limits import add_capacity_limits, add_limits, capacity_limit, limit_entry
from headgate.bench.linear_road.order import groups, turns
from headgate.bench.linear_road.programmes import BEST, Part, Programme
from headgate.bench.linear_road.runner import Runner, Tell
from headgate.bench.linear_road.scenarios import CONTENDERS, Scenario, find_contender, find_scenario, same_queries
from headgate.bench.linear_road.search import CapacitySearch
from headgate.bench.linear_road.store import Store
from headgate.bench.linear_road.sweep import candidates, decide, probes_left, sessions_left, sweep
from headgate.bench.plan import Contender

APPLICATION_S = 15.0
"""Starting and stopping Spark."""

CELL_OVERHEAD_S = 15.0
"""Starting four queries one by one, waiting for the last records, stopping them."""

WARM_UP_MORE_S = 20.0
"""What a warm-up takes beyond its least time, usually."""

COST_S, SATURATED_S = 120.0, calibration.WORK_S + 25.0
"""Calibration: a query alone, and one set of queries together."""

PROBES, LATER_PROBES = 3.5, 2.0
"""A search takes about so many full cells, the first of a contender and those of later repeats, which begin where it
ended: it needs more, but half of them end early."""

NEAR_STRIDE = 1.07
"""The steps of such a later search."""

LONGEST_VISIT_S = 20 * 60.0
"""If a contender needs longer for a group, cells and searches are two rounds: what is compared should be near. Three
searches alone take a little longer; splitting them, too, would cost more warm-ups than it gains."""

FIRST_LOAD = 0.5
"""Where a search begins if nothing is known."""


@dataclass(slots=True)
class Visit:
    """What one application of one contender still has to do."""

    contender: Contender
    repeat: int
    cores: int
    cells: list[tuple[str, str, float]] = field(default_factory=list)
    """(part, scenario, load)."""
    searches: list[str] = field(default_factory=list)
    saturation: bool = False

    @property
    def empty(self) -> bool:
        return not (self.cells or self.searches or self.saturation)

    def only(self, *, cells: bool) -> Visit:
        """The cells, or everything else."""
        if cells:
            return Visit(self.contender, self.repeat, self.cores, self.cells)
        return Visit(self.contender, self.repeat, self.cores, [], self.searches, self.saturation)


def stand_between(visits: Sequence[Visit]) -> bool:
    """Whether some come for cells alone and some for searches alone: each would part others that are compared."""
    cells_alone = any(visit.cells and not visit.searches for visit in visits)
    return cells_alone and any(visit.searches and not visit.cells for visit in visits)


class Judge:
    """Runs a programme into a store; what the store has already is not run again."""

    def __init__(
        self,
        programme: Programme,
        store: Store,
        cores: int,
        tell: Tell,
        kafka: str | None = None,
        gauge: Gauge | None = None,
    ) -> None:
        self.programme = programme
        self.store = store
        self.cores = cores
        self.runner = Runner(programme, store, tell, self.remaining_s, kafka, gauge)
        if gauge is not None:
            gauge.reference_s = store.data.get("loop_s")

    def run(self) -> None:
        """Everything that is missing."""
        try:
            self._calibrate()
            sweep(self.runner)
            for visit in self.visits():
                self._attend(visit)
            self._limits()
        finally:
            self.runner.close()

    def remaining_s(self) -> float:
        """A forecast of the time until the end."""
        programme, known = self.programme, self.store.data
        calibrated, seconds = (known["calibration"] or {"query_sets": {}})["query_sets"], 0.0
        new, costs = [key for key in programme.query_sets if key not in calibrated], self._without_cost()
        if new or costs:
            seconds += self._application_s + COST_S * len(costs) + SATURATED_S * len(new)
        seconds += sessions_left(known, programme) * self._application_s
        seconds += probes_left(known, programme) * self._cell_s
        visits = list(self.visits())
        seconds += sum(self.visit_s(visit) for visit in visits)
        jvms = {visit.cores for visit in visits} | ({self.cores} if seconds else set())
        return seconds + programme.drive_in_s * sum(not self.runner.driven_in(cores) for cores in jvms)

    def visit_s(self, visit: Visit) -> float:
        """A forecast of the time that `visit` takes."""
        cells = len(visit.cells) + (LATER_PROBES if visit.repeat else PROBES) * len(visit.searches)
        return self._application_s + cells * self._cell_s + visit.saturation * SATURATED_S

    @property
    def _cell_s(self) -> float:
        return self.programme.settle_s + self.programme.measure_s + CELL_OVERHEAD_S

    @property
    def _application_s(self) -> float:
        return APPLICATION_S + self.programme.warm_up_s + WARM_UP_MORE_S

    # ---- what is left

    def _without_cost(self) -> list[str]:
        """Queries whose cost alone is wanted and not known."""
        if not self.programme.costs:
            return []
        known = (self.store.data["calibration"] or {"queries": {}})["queries"]
        names = dict.fromkeys(name for queries in self.programme.query_sets.values() for name in queries)
        return [name for name in names if name not in known]

    def visits(self) -> Iterator[Visit]:
        """Group after group within a repeat, contender after contender within a group."""
        for repeat in range(self.programme.repeats):
            for cores in dict.fromkeys([self.cores, *(n for part in self.programme.parts for n in part.cores)]):
                for group in groups(self.programme.scenarios):
                    yield from self._round(group, repeat, cores)

    def _round(self, group: list[str], repeat: int, cores: int) -> list[Visit]:
        names = turns(self._blocks(group), repeat)
        visits = [self._visit(find_contender(name), repeat, cores, group) for name in names]
        if stand_between(visits) or any(self.visit_s(visit) > LONGEST_VISIT_S for visit in visits):
            visits = [visit.only(cells=cells) for cells in (True, False) for visit in visits]
        return [visit for visit in visits if not visit.empty]

    def _blocks(self, group: list[str]) -> list[list[str]]:
        """Contenders that are compared with each other. The searches come first: theirs are the longest visits."""
        programme = self.programme
        used = [(programme.capacity_contenders, programme.capacity)]
        used += [(part.contenders, part.scenarios) for part in programme.parts]
        blocks = [self._named(names, [name for name in group if name in scenarios]) for names, scenarios in used]
        return [*blocks, list(programme.saturation)]

    def _named(self, names: tuple[str, ...], scenarios: list[str]) -> list[str]:
        """`names` in these scenarios; for the best static setting the favourites, and at the end the runners-up.

        So ours, which `names` have after it, stands between those that it is compared with.
        """
        found = [self._candidates(scenario) for scenario in scenarios]
        favourites, others = [n for each in found for n in each[:1]], [n for each in found for n in each[1:]]
        named = [each for name in names if scenarios for each in (favourites if name == BEST else [name])]
        return named + (others if BEST in names else [])

    def _candidates(self, scenario: str) -> list[str]:
        return candidates(self.store.data, self.programme, scenario)

    def _visit(self, contender: Contender, repeat: int, cores: int, group: list[str]) -> Visit:
        visit = Visit(contender, repeat, cores)
        for part in self.programme.parts:
            if part.has_turn(repeat) and cores in (part.cores or (self.cores,)):
                missing = self._missing(part, contender, repeat, cores, group)
                visit.cells += [cell for cell in missing if cell not in visit.cells]  # parts may share some
        if cores == self.cores:
            visit.searches = [
                scenario
                for scenario in self.programme.searched_in(repeat)
                if scenario in group
                and self._takes_part(contender, scenario, self.programme.capacity_contenders)
                and self.store.capacity(scenario, contender.name, repeat) is None
            ]
            wanted = contender.name in self.programme.saturation and group == self._saturated_group
            visit.saturation = wanted and self.store.saturation(contender.name, repeat) is None
        return visit

    @property
    def _saturated_set(self) -> str:
        """The most queries: throughput at saturation is theirs."""
        return max(self.programme.query_sets, key=len)

    @property
    def _saturated_group(self) -> list[str]:
        """The first group with all those queries: its applications measure saturation, too."""
        found = groups(self.programme.scenarios)
        return next(group for group in found if find_scenario(group[0]).query_set == self._saturated_set)

    def _missing(
        self, part: Part, contender: Contender, repeat: int, cores: int, group: list[str]
    ) -> list[tuple[str, str, float]]:
        return [
            (part.name, scenario, load)
            for scenario in part.scenarios
            if scenario in group
            if self._takes_part(contender, scenario, part.contenders)
            for load in part.loads
            if not self.store.has(part.name, scenario, contender.name, load, repeat, cores)
        ]

    def _takes_part(self, contender: Contender, scenario: str, names: tuple[str, ...]) -> bool:
        return contender.name in names or (BEST in names and contender.name in self._candidates(scenario))

    # ---- doing it

    def _calibrate(self) -> None:
        """The costs and rates that are not known yet: a programme may be widened later."""
        say, known = self.runner.say, self.store.data["calibration"] or {"query_sets": {}, "queries": {}}
        sets = {key: queries for key, queries in self.programme.query_sets.items() if key not in known["query_sets"]}
        new = self._without_cost()
        if not (sets or new):
            return
        say("calibration")
        begun_at_s = time.time()
        with self.runner.application(CONTENDERS["trigger-0"]) as app:
            self._take_reference(begun_at_s)
            costs, rates = dict(known["queries"]), dict(known["query_sets"])
            for name in new:
                costs |= calibration.query_costs(app, [name], self.cores, say)
                self._keep_calibration(costs, rates)
            for key, queries in sets.items():
                guess = calibration.first_guess(queries, costs, self.cores)
                rates[key] = min(calibration.sustained(app, queries, guess / self.runner.slowness()).values())
                say(f"load 1.0 for {key}: {rates[key]:,.0f} reports/s into each")
                self._keep_calibration(costs, rates)

    def _keep_calibration(self, costs: dict[str, Any], rates: dict[str, float]) -> None:
        """After each of its parts: what takes minutes is not measured twice."""
        rate = max(rates.values(), default=0.0)
        self.store.data["calibration"] = {"rate": rate, "query_sets": dict(rates), "queries": dict(costs)}
        self.store.save()

    def _take_reference(self, since_s: float) -> None:
        """The machine's speed of this time, with queries running, is what all others are told in."""
        gauge = self.runner.gauge
        if gauge is not None and gauge.reference_s is None:
            gauge.reference_s = self.store.data["loop_s"] = gauge.mean_s(since_s, time.time())

    def _attend(self, visit: Visit) -> None:
        first = find_scenario(visit.cells[0][1] if visit.cells else (visit.searches or self.programme.scenarios)[0])
        with self.runner.application(visit.contender, visit.cores) as app:
            self.runner.warm(app, first)
            for part, name, load in visit.cells:
                measured = self.runner.cell(app, find_scenario(name), load, part, visit.repeat)
                self.store.add(part, name, load, measured, visit.repeat, visit.cores)
            for name in visit.searches:
                self._capacity(app, visit, find_scenario(name))
            if visit.saturation:  # last: a JVM that was overwhelmed is slower for minutes
                self._saturate(app, visit)

    def _capacity(self, app: Application, visit: Visit, scenario: Scenario) -> None:
        name = visit.contender.name
        search = self._new_search(scenario.name, name)
        probes = self.runner.search(app, scenario, search, "capacity", visit.repeat)
        entry = {"scenario": scenario.name, "contender": name, "repeat": visit.repeat, "load": search.capacity}
        self.store.append("capacity", entry | {"rate": self.runner.rate(scenario, search.capacity), "probes": probes})
        decide(self.store.data, scenario.name)
        self.store.save()

    def _new_search(self, scenario: str, contender: str) -> CapacitySearch:
        """It begins where earlier repeats ended, or the sweep, or the same queries under other promises, or anybody."""
        searched, swept = self.store.data["capacity"], self.store.data["sweep"]
        own = _loads(searched, contender, {scenario})
        if own:
            return CapacitySearch(median(own), stride=NEAR_STRIDE)
        kin = {entry["scenario"] for entry in searched if same_queries(entry["scenario"], scenario)}
        found = (
            _loads(swept, contender, {scenario})
            or _loads(searched, contender, kin)
            or [load for entries in (searched, swept) for load in _loads(entries, None, {scenario})]
        )
        return CapacitySearch(max(found, default=FIRST_LOAD))

    def _saturate(self, app: Application, visit: Visit) -> None:
        known = self.store.data["calibration"]["query_sets"][self._saturated_set]
        queries = calibration.sustained(app, self._saturated_set.split("+"), known / self.runner.slowness())
        rate = min(queries.values())
        self.runner.say(f"{visit.contender.title}: saturated at {rate:,.0f} reports/s into each query")
        entry = {"contender": visit.contender.name, "repeat": visit.repeat, "rows_per_s": rate, "queries": queries}
        self.store.append("saturation", entry)

    def _limits(self) -> None:
        """The clairvoyant scheduler on the same traffic and the measured costs."""
        add_limits(self.store.data, self.cores, self._limit)
        add_capacity_limits(self.store.data, self._capacity_limit)
        self.store.save()

    def _limit(self, name: str, load: float, repeats: list[int]) -> dict[str, Any]:
        self.runner.say(f"clairvoyant limit of {name} at load {load:g}")
        windows = {repeat: self.programme.window(repeat) for repeat in repeats}
        rate, costs = self.runner.rate(find_scenario(name), load), self.store.data["calibration"]["queries"]
        return limit_entry(find_scenario(name), load, rate, windows, costs)

    def _capacity_limit(self, name: str, repeat: int, measured: float) -> float:
        self.runner.say(f"clairvoyant capacity of {name}, repeat {repeat}")
        scenario, costs = find_scenario(name), self.store.data["calibration"]["queries"]

        def rate_at(load: float) -> float:
            return self.runner.rate(scenario, load)

        return capacity_limit(scenario, rate_at, self.programme.window(repeat), costs, measured)


def _loads(entries: list[dict[str, Any]], contender: str | None, scenarios: set[str]) -> list[float]:
    """The loads that `contender`, or anybody, kept in these scenarios."""
    return [
        float(entry["load"])
        for entry in entries
        if entry["scenario"] in scenarios and entry["load"] > 0 and contender in (None, entry["contender"])
    ]
