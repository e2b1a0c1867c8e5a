"""The benchmark's order of events: calibrate, sweep, then contender after contender, repeat after repeat.

Every contender of a repeat gets a fresh Spark application, warms up until its batch times stop falling, and then runs
all cells that are still missing; the next repeat does the same again: slow changes of the machine hit all alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import median

from headgate.bench.application import Application
from headgate.bench.clairvoyant import ClairvoyantQuery, limit
from headgate.bench.linear_road import calibration
from headgate.bench.linear_road.programmes import BEST, Part, Programme
from headgate.bench.linear_road.runner import Runner, Tell, warm_up
from headgate.bench.linear_road.scenarios import CONTENDERS, SCENARIOS, Scenario, find_contender
from headgate.bench.linear_road.search import CapacitySearch
from headgate.bench.linear_road.store import Store
from headgate.bench.linear_road.sweep import sweep, tries_left
from headgate.bench.plan import Contender
from headgate.core.traffic import parse_traffic

APPLICATION_S = 15.0
"""Starting and stopping Spark."""

CELL_OVERHEAD_S = 15.0
"""Starting four queries one by one, waiting for the last records, stopping them."""

WARM_UP_MORE_S = 30.0
"""What a warm-up takes beyond its least time, usually."""

COSTS_S, SATURATED_S = 200.0, 80.0
"""Calibration: every query alone, and one set of queries together."""

SWEEP_PROBES = 1.5
PROBES = 3
"""A search takes about so many full cells: it needs more, but half of them end early."""

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


class Judge:
    """Runs a programme into a store; what the store has already is not run again."""

    def __init__(self, programme: Programme, store: Store, cores: int, tell: Tell, kafka: str | None = None) -> None:
        self.programme = programme
        self.store = store
        self.cores = cores
        self.runner = Runner(programme, store, tell, self.remaining_s, kafka)

    def run(self) -> None:
        """Everything that is missing."""
        self._calibrate()
        sweep(self.runner)
        for visit in self.visits():
            self._attend(visit)
        self._limits()

    def remaining_s(self) -> float:
        """A forecast of the time until the end."""
        programme, known = self.programme, self.store.data
        cell_s = programme.settle_s + programme.measure_s + CELL_OVERHEAD_S
        application_s, seconds = APPLICATION_S + programme.warm_up_s + WARM_UP_MORE_S, 0.0
        calibrated = (known["calibration"] or {"query_sets": {}})["query_sets"]
        if new := [key for key in programme.query_sets if key not in calibrated]:
            seconds += application_s + (0.0 if calibrated else COSTS_S) + SATURATED_S * len(new)
        seconds += tries_left(known, programme) * SWEEP_PROBES * cell_s
        for visit in self.visits():
            cells = len(visit.cells) + PROBES * len(visit.searches) + visit.saturation
            seconds += application_s + cells * cell_s
        return seconds

    # ---- what is left

    def visits(self) -> Iterator[Visit]:
        """Contender after contender within a repeat: the order that is least kind to lucky phases of the machine."""
        for repeat in range(self.programme.repeats):
            for cores in dict.fromkeys([self.cores, *(n for part in self.programme.parts for n in part.cores)]):
                for contender in self._contenders():
                    visit = self._visit(contender, repeat, cores)
                    if not visit.empty:
                        yield visit

    def _contenders(self) -> list[Contender]:
        programme, found = self.programme, dict[str, Contender]()
        lists = [part.contenders for part in programme.parts]
        lists += [programme.capacity_contenders] if programme.capacity else []
        for name in (name for names in [*lists, programme.saturation] for name in names):
            settings = self.store.data["best_static"].values() if name == BEST else [name]
            found |= {setting: find_contender(setting) for setting in settings}
        return list(found.values())

    def _visit(self, contender: Contender, repeat: int, cores: int) -> Visit:
        visit = Visit(contender, repeat, cores)
        for part in self.programme.parts:
            if part.has_turn(repeat) and cores in (part.cores or (self.cores,)):
                visit.cells += self._missing(part, contender, repeat, cores)
        if cores == self.cores:
            visit.searches = [
                scenario
                for scenario in self.programme.capacity
                if self._takes_part(contender, scenario, self.programme.capacity_contenders)
                and self.store.capacity(scenario, contender.name, repeat) is None
            ]
            wanted = contender.name in self.programme.saturation
            visit.saturation = wanted and self.store.saturation(contender.name, repeat) is None
        return visit

    def _missing(self, part: Part, contender: Contender, repeat: int, cores: int) -> list[tuple[str, str, float]]:
        return [
            (part.name, scenario, load)
            for scenario in part.scenarios
            if self._takes_part(contender, scenario, part.contenders)
            for load in part.loads
            if not self.store.has(part.name, scenario, contender.name, load, repeat, cores)
        ]

    def _takes_part(self, contender: Contender, scenario: str, names: tuple[str, ...]) -> bool:
        best = self.store.data["best_static"].get(scenario)
        return contender.name in names or (BEST in names and contender.name == best)

    # ---- doing it

    def _calibrate(self) -> None:
        """The costs and rates that are not known yet: a programme may be widened later."""
        say, known = self.runner.say, self.store.data["calibration"] or {"query_sets": {}, "queries": {}}
        sets = {key: queries for key, queries in self.programme.query_sets.items() if key not in known["query_sets"]}
        if not sets:
            return
        names = list(dict.fromkeys(name for queries in sets.values() for name in queries))
        say("calibration: warming up until batch times stop falling")
        with self.runner.application(CONTENDERS["trigger-0"]) as app:
            app.run(warm_up(calibration.easy(names, self.cores), self.programme.warm_up_s))
            new = [name for name in names if name not in known["queries"]]
            costs = known["queries"] | calibration.query_costs(app, new, self.cores, say)
            rates = dict(known["query_sets"])
            for key, queries in sets.items():
                rates[key] = calibration.reached_rate(app.run(calibration.saturated(queries, costs)), costs)
                say(f"load 1.0 for {key}: {rates[key]:,.0f} reports/s into each")
        self.store.data["calibration"] = {"rate": max(rates.values()), "query_sets": rates, "queries": costs}
        self.store.save()

    def _attend(self, visit: Visit) -> None:
        first = visit.cells[0][1] if visit.cells else (visit.searches or self.programme.scenarios)[0]
        with self.runner.application(visit.contender, visit.cores) as app:
            self.runner.warm(app, SCENARIOS[first])
            for part, name, load in visit.cells:
                found = self.runner.cell(app, SCENARIOS[name], load, part)
                rate = self.runner.rate(SCENARIOS[name], load)
                self.store.add(part, name, load, rate, visit.repeat, visit.cores, found)
            for name in visit.searches:
                self._capacity(app, visit, SCENARIOS[name])
            if visit.saturation:  # last: a JVM that was overwhelmed is slower for minutes
                self._saturate(app, visit)

    def _capacity(self, app: Application, visit: Visit, scenario: Scenario) -> None:
        name = visit.contender.name
        search = CapacitySearch(self._first_load(scenario.name, name))
        probes = self.runner.search(app, scenario, search, "capacity")
        entry = {"scenario": scenario.name, "contender": name, "repeat": visit.repeat, "load": search.capacity}
        self.store.append("capacity", entry | {"rate": self.runner.rate(scenario, search.capacity), "probes": probes})

    def _first_load(self, scenario: str, contender: str) -> float:
        """Where an earlier repeat ended, or the sweep, or anybody; a search that starts near its goal is short."""
        known = [entry for kind in ("capacity", "sweep") for entry in self.store.data[kind] if entry["load"] > 0]
        here = [entry for entry in known if entry["scenario"] == scenario]
        own = [entry["load"] for entry in here if entry["contender"] == contender]
        if own:
            return float(median(own))
        return max((float(entry["load"]) for entry in here), default=FIRST_LOAD)

    def _saturate(self, app: Application, visit: Visit) -> None:
        known = self.store.data["calibration"]
        key = max(known["query_sets"], key=len)
        found = app.run(calibration.saturated(key.split("+"), known["queries"]))
        rate = calibration.reached_rate(found, known["queries"])
        self.runner.say(f"{visit.contender.title}: saturated at {rate:,.0f} reports/s into each query")
        queries = {name: query["rows_per_s"] for name, query in found.queries.items()}
        entry = {"contender": visit.contender.name, "repeat": visit.repeat, "rows_per_s": rate, "queries": queries}
        self.store.append("saturation", entry)

    def _limits(self) -> None:
        """The clairvoyant scheduler on the same traffic and the measured costs."""
        runs = [run for run in self.store.data["runs"] if run["cores"] == self.cores]
        known = {(entry["scenario"], entry["load"]) for entry in self.store.data["limit"]}
        for name, load in sorted({(run["scenario"], run["load"]) for run in runs} - known):
            self.runner.say(f"clairvoyant limit of {name} at load {load:g}")
            skip_s = self.programme.settle_s
            rates = limit(
                self._clairvoyant(SCENARIOS[name], load), skip_s + self.programme.measure_s + 30, skip_s=skip_s
            )
            self.store.append("limit", {"scenario": name, "load": load, "violation_rates": rates})

    def _clairvoyant(self, scenario: Scenario, load: float) -> list[ClairvoyantQuery]:
        costs = self.store.data["calibration"]["queries"]
        return [
            ClairvoyantQuery(
                query.name,
                query.deadline_s,
                costs[query.name]["fixed_s"],
                costs[query.name]["per_row_s"],
                parse_traffic(query.rate, self.programme.seed),
            )
            for query in scenario.queries(self.runner.rate(scenario, load))
        ]
