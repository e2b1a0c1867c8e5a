"""What the judge runs and in which order, with applications that answer at once. No Spark."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from headgate.bench.gauge import Gauge
from headgate.bench.jvm import Jvm
from headgate.bench.linear_road import limits
from headgate.bench.linear_road import runner as running
from headgate.bench.linear_road.judge import LONGEST_VISIT_S, Judge
from headgate.bench.linear_road.programmes import BEST, PAPERS, Part, Programme, full, quick
from headgate.bench.linear_road.scenarios import (
    BURST_EVERY_S,
    SCENARIOS,
    SWEEP,
    Window,
    find_contender,
    find_scenario,
    realised_rate,
)
from headgate.bench.linear_road.store import Store, read_results
from headgate.bench.plan import Cell, Contender, Outcome
from headgate.errors import BadParameter

SETTINGS = {"repeats": 2, "measure_s": 60.0, "settle_s": 15.0, "seed": 1, "parts": []}
PROGRAMME = Programme(
    parts=(Part("mixed", ("mixed-u",), (0.5,), ("trigger-0", BEST, "slo-edf")),),
    capacity=("mixed-u",),
    saturation=("trigger-0",),
    repeats=2,
    sweep=("trigger-0", "static-0.25-fair", "static-0-fifo", "static-0.25-fifo"),
)

DRIVE_IN_S = Programme().drive_in_s
DRIVING_IN = "trigger-0"
"""Who a fresh JVM is driven in with."""


class Instant:
    """An application whose queries keep their promises up to a capacity: Headgate's is higher, a quarter is best."""

    started: list[tuple[str, int | None]] = []  # noqa: RUF012 - shared on purpose: one list for all applications
    cells: list[tuple[str, Cell]] = []  # noqa: RUF012 - the same
    thefts: list[float] = []  # noqa: RUF012 - the same: what the host takes away from the next cells, the last one first

    def __init__(self, contender: Contender, jvm: Jvm, gauge: Any = None) -> None:
        self.contender = contender
        self.gauge = gauge
        self.started.append((contender.name, jvm.cores))

    def __enter__(self) -> Instant:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def run(self, cell: Cell) -> Outcome:
        self.cells.append((self.contender.name, cell))
        return Outcome(
            self.contender.name, self.contender.title, 10.0, 60.0, {q.name: self._found(cell, q) for q in cell.queries},
            slowness=self.slowness, stolen=self.thefts.pop() if self.thefts else 0.0,
        )  # fmt: skip

    @property
    def slowness(self) -> float:
        return self.gauge.now if self.gauge is not None else 1.0

    def _found(self, cell: Cell, query: Any) -> dict[str, Any]:
        if cell.rows is not None:
            return {"rows": cell.rows, "done_s": self.slowness * cell.rows / 10_000}
        rate = realised_rate(query.rate, Window(cell.settle_s, cell.settle_s + cell.measure_s, cell.seed))
        share = self.contender.trigger_share if query.trigger_s is None else query.trigger_s / query.deadline_s
        most = 9_000 if share is None else 6_000 if share == 0.25 and self.contender.mode == "FAIR" else 4_000
        most = 2_000 if share == 0.5 else most
        late = 0.0 if self.slowness * rate <= 1.001 * most else 0.5
        rows = int(rate * (query.trigger_s or 1.0))
        return {
            "violation_rate": late, "keeps_promise": not late, "rows": rows,
            "batch_times": [(rows, self.slowness * (0.2 + 2e-5 * rows))] * 9,
        }  # fmt: skip


@pytest.fixture
def instant(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int | None]]:
    started: list[tuple[str, int | None]] = []
    monkeypatch.setattr(Instant, "started", started)
    monkeypatch.setattr(Instant, "cells", [])
    monkeypatch.setattr(Instant, "thefts", [])
    monkeypatch.setattr(running, "Application", Instant)
    monkeypatch.setattr(limits, "capacity", lambda queries_at, seconds, low, high, skip_s: (low + high) / 2)
    return started


def judge(folder: Path, programme: Programme = PROGRAMME) -> Judge:
    return Judge(programme, Store(folder, "headgate bench linear-road", SETTINGS), 2, lambda *_: None)


def test_contenders_take_turns_and_every_turn_is_a_fresh_application(tmp_path: Path, instant: list[Any]) -> None:
    judge(tmp_path).run()
    driving_in, calibration, fair, fifo, *turns = [name for name, _ in instant]
    assert (driving_in, calibration, fair, fifo) == (DRIVING_IN, "trigger-0", "trigger-0", "static-0-fifo")
    assert turns == ["static-0.25-fair", "slo-edf", "trigger-0", "trigger-0", "static-0.25-fair", "slo-edf"]


def test_a_repeat_has_the_same_traffic_for_all_and_another_repeat_other_traffic(
    tmp_path: Path, instant: list[Any]
) -> None:
    judge(tmp_path).run()
    cells = [(name, cell) for name, cell in Instant.cells if cell.measure_s == PROGRAMME.measure_s]
    seeds = {(name, cell.seed) for name, cell in cells}
    contenders = ("trigger-0", "static-0.25-fair", "slo-edf")
    assert seeds == {*((name, 1 + repeat) for name in contenders for repeat in (0, 1)), ("static-0-fifo", 1)}
    assert {cell.settle_s for _, cell in cells} == {PROGRAMME.settle_s}


def test_the_load_of_the_measured_window_is_the_one_that_was_asked_for(tmp_path: Path, instant: list[Any]) -> None:
    judge(tmp_path, replace(PROGRAMME, capacity=(), saturation=(), sweep=("trigger-0",))).run()
    cells = [cell for name, cell in Instant.cells if name == "slo-edf" and cell.measure_s == PROGRAMME.measure_s]
    for cell in cells:
        window = Window(cell.settle_s, cell.settle_s + cell.measure_s, cell.seed)
        assert realised_rate(cell.queries[0].rate, window) == pytest.approx(5_000, rel=1e-3)
    assert len({cell.queries[0].rate for cell in cells}) == 2


def test_a_cell_that_two_parts_want_is_measured_once(tmp_path: Path, instant: list[Any]) -> None:
    parts = (
        Part("cells", ("equal-5-u", "equal-8-u"), (0.5,), ("slo-edf",)),
        Part("cells", ("equal-8-u",), (0.5,), ("slo-edf",)),
    )
    judged = judge(tmp_path, Programme(parts=parts, repeats=1))
    judged.run()
    assert [run["scenario"] for run in judged.store.data["runs"]] == ["equal-5-u", "equal-8-u"]


def test_load_one_is_what_every_query_has_done_of_the_same_work(tmp_path: Path, instant: list[Any]) -> None:
    judged = judge(tmp_path)
    judged.run()
    assert judged.store.data["calibration"]["query_sets"] == {"alerts+lr1+lr2+lr3": pytest.approx(10_000)}
    assert [entry["rows_per_s"] for entry in judged.store.data["saturation"]] == [pytest.approx(10_000)] * 2


def test_without_costs_there_is_a_load_but_no_limit(tmp_path: Path, instant: list[Any]) -> None:
    judged = judge(tmp_path, replace(quick(), measure_s=60.0))
    judged.run()
    assert judged.store.data["calibration"]["queries"] == {}
    assert judged.store.data["calibration"]["rate"] == pytest.approx(10_000)
    assert judged.store.data["limit"] == []
    wider = judge(tmp_path, replace(quick(), costs=True))
    assert wider.remaining_s() > 0
    wider.run()
    assert set(wider.store.data["calibration"]["queries"]) == {"alerts", "lr1", "lr2", "lr3"}
    assert [entry["scenario"] for entry in wider.store.data["limit"]] == ["mixed-bursty"]
    assert wider.remaining_s() == 0


def test_the_limit_is_made_again_when_repeats_are_added(tmp_path: Path, instant: list[Any]) -> None:
    part = Part("mixed", ("mixed-u",), (0.5,), ("slo-edf",))
    for repeats in (1, 2):
        judged = judge(tmp_path, Programme(parts=(part,), repeats=repeats))
        judged.run()
        [entry] = judged.store.data["limit"]
        assert entry["repeats"] == list(range(repeats))
        assert len(entry["by_repeat"]) == repeats


def test_every_capacity_that_was_searched_has_the_clairvoyant_one_beside_it(tmp_path: Path, instant: list[Any]) -> None:
    judged = judge(tmp_path, replace(PROGRAMME, parts=()))
    judged.run()
    found = {(entry["scenario"], entry["repeat"]): entry["load"] for entry in judged.store.data["capacity_limit"]}
    measured = [entry for entry in judged.store.data["capacity"] if entry["contender"] == "slo-edf"]
    middle = (limits.BELOW + limits.ABOVE) / 2
    assert found == {("mixed-u", entry["repeat"]): pytest.approx(middle * entry["load"]) for entry in measured}
    judged.run()
    assert len(judged.store.data["capacity_limit"]) == len(found) == 2


def test_the_sweep_finds_the_best_setting_and_the_search_our_capacity(tmp_path: Path, instant: list[Any]) -> None:
    judged = judge(tmp_path)
    judged.run()
    assert judged.store.data["static_candidates"] == {"mixed-u": ["static-0.25-fair"]}
    assert judged.store.data["best_static"] == {"mixed-u": "static-0.25-fair"}
    found = {(e["contender"], e["repeat"]): e["rate"] for e in judged.store.data["capacity"]}
    assert found["slo-edf", 1] == pytest.approx(9_000, rel=0.08)
    assert found["static-0.25-fair", 1] == pytest.approx(6_000, rel=0.08)
    lost = [entry for entry in judged.store.data["sweep"] if not entry["load"]]
    assert {entry["contender"] for entry in lost} == {"static-0-fifo", "static-0.25-fifo"}
    assert all(len(entry["probes"]) == 1 for entry in lost)


class Flickering:
    """A gauge of a machine whose speed changes from one look to the next; for a while, its reading lags behind."""

    reference_s: float | None = None

    def __init__(self) -> None:
        self.now = 1.0
        self._looks = 0

    def lately(self) -> float:
        before, self._looks = self.now, self._looks + 1
        self.now = 1.6 if self._looks % 5 > 2 else 1.05
        return before

    def mean_s(self, since_s: float, until_s: float) -> float:
        return 0.004


def test_a_machine_that_changes_its_speed_has_the_same_loads_and_capacities(tmp_path: Path, instant: list[Any]) -> None:
    store = Store(tmp_path, "headgate bench linear-road", SETTINGS)
    Judge(PROGRAMME, store, 2, lambda *_: None, gauge=cast(Gauge, Flickering())).run()
    assert store.data["loop_s"] == 0.004
    assert store.data["calibration"]["query_sets"] == {"alerts+lr1+lr2+lr3": pytest.approx(10_000)}
    assert store.data["calibration"]["queries"]["lr1"]["per_row_s"] == pytest.approx(2e-5)
    assert [entry["rows_per_s"] for entry in store.data["saturation"]] == [pytest.approx(10_000)] * 2
    found = {(entry["contender"], entry["repeat"]): entry["rate"] for entry in store.data["capacity"]}
    assert found["slo-edf", 0] == pytest.approx(9_000, rel=0.08)
    assert found["static-0.25-fair", 1] == pytest.approx(6_000, rel=0.08)
    for run in store.data["runs"]:
        assert run["load_met"] == pytest.approx(run["rate"] * run["slowness"] / 10_000)


def test_a_rate_is_the_same_however_fast_the_machine_is(tmp_path: Path, instant: list[Any]) -> None:
    store = Store(tmp_path, "headgate bench linear-road", SETTINGS)
    part = Part("cells", ("equal-8-u",), (4_000.0,), ("slo-edf",))
    Judge(Programme(parts=(part,)), store, 2, lambda *_: None, gauge=cast(Gauge, Flickering())).run()
    assert [run["rate"] for run in store.data["runs"]] == [4_000] * 3
    assert [run["load_met"] for run in store.data["runs"]] == [
        pytest.approx(0.4 * run["slowness"]) for run in store.data["runs"]
    ]
    assert {entry["load"] for entry in store.data["limit"]} == {4_000}


def test_fine_searches_correct_the_sweep(tmp_path: Path, instant: list[Any]) -> None:
    judged = judge(tmp_path, Programme(capacity=("mixed-u",), repeats=1))
    judged.store.data["static_candidates"] = {"mixed-u": ["trigger-0", "static-0.25-fair"]}
    judged.store.data["best_static"] = {"mixed-u": "trigger-0"}
    judged.run()
    assert read_results(tmp_path)["best_static"] == {"mixed-u": "static-0.25-fair"}


def test_a_candidate_far_behind_another_is_not_searched_again(tmp_path: Path, instant: list[Any]) -> None:
    judged = judge(tmp_path, Programme(capacity=("mixed-u",), repeats=2))
    judged.store.data["static_candidates"] = {"mixed-u": ["trigger-0", "static-0.25-fair"]}
    judged.store.data["best_static"] = {"mixed-u": "trigger-0"}
    judged.run()
    found = {(entry["contender"], entry["repeat"]) for entry in judged.store.data["capacity"]}
    both, one = {"trigger-0", "static-0.25-fair", "slo-edf"}, {"static-0.25-fair", "slo-edf"}
    assert found == {*((name, 0) for name in both), *((name, 1) for name in one)}


def test_a_search_begins_where_the_same_queries_ended_under_other_traffic(tmp_path: Path, instant: list[Any]) -> None:
    judged = judge(tmp_path, Programme(capacity=("mixed-u", "mixed-bursty"), repeats=1, sweep=("trigger-0",)))
    judged.run()
    ours = {e["scenario"]: e for e in judged.store.data["capacity"] if e["contender"] == "slo-edf"}
    first, second = ours["mixed-u"], ours["mixed-bursty"]
    assert second["probes"][0]["load"] == pytest.approx(first["load"], rel=1e-3)
    assert len(second["probes"]) < len(first["probes"])


class Interrupted(Instant):
    """Somebody presses Ctrl-C in the middle of the search for our capacity."""

    def run(self, cell: Cell) -> Outcome:
        if self.contender.name == "slo-edf" and sum(name == "slo-edf" for name, _ in self.cells) == 3:
            raise KeyboardInterrupt
        return super().run(cell)


def test_a_search_that_was_interrupted_goes_on_with_its_probes(
    tmp_path: Path, instant: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    programme = Programme(capacity=("mixed-u",), repeats=1, sweep=("static-0.25-fair",))
    judge(tmp_path / "whole", programme).run()
    whole = read_results(tmp_path / "whole")
    monkeypatch.setattr(Instant, "cells", [])
    monkeypatch.setattr(Instant, "thefts", [])
    monkeypatch.setattr(running, "Application", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        judge(tmp_path / "cut", programme).run()
    kept = read_results(tmp_path / "cut")["open_search"]["probes"]
    assert kept == whole["capacity"][-1]["probes"][:2]  # the first of its three cells was the warm-up
    monkeypatch.setattr(running, "Application", Instant)
    again = judge(tmp_path / "cut", programme)
    again.run()
    assert "open_search" not in again.store.data
    for kind in ("sweep", "capacity"):
        assert again.store.data[kind] == whole[kind]


def test_scenarios_that_are_searched_once_are_not_searched_in_later_repeats(tmp_path: Path, instant: list[Any]) -> None:
    twice = Programme(
        capacity=("mixed-u", "mixed-bursty"), capacity_once=("mixed-bursty",), repeats=2, sweep=("trigger-0",)
    )
    judged = judge(tmp_path, twice)
    judged.run()
    found = {(entry["scenario"], entry["repeat"]) for entry in judged.store.data["capacity"]}
    assert found == {("mixed-u", 0), ("mixed-u", 1), ("mixed-bursty", 0)}


def test_known_queries_are_tried_again_with_the_best_kind_of_session_alone(tmp_path: Path, instant: list[Any]) -> None:
    settings = ("trigger-0", "static-0.25-fair", "static-0.25-fifo", "static-0.25-fair-plain")
    judged = judge(tmp_path, Programme(capacity=("mixed-u", "mixed-bursty", "equal-5-u"), repeats=1, sweep=settings))
    assert judged.remaining_s() > 0
    judged.run()
    tried = {(entry["scenario"], entry["contender"]) for entry in judged.store.data["sweep"]}
    everything = {(name, setting) for name in ("mixed-u", "mixed-bursty", "equal-5-u") for setting in settings}
    assert everything - tried == {("mixed-bursty", "static-0.25-fifo")}
    assert set(judged.store.data["best_static"].values()) <= {"static-0.25-fair", "static-0.25-fair-plain"}


def test_what_was_interrupted_goes_on_where_it_stopped(tmp_path: Path, instant: list[Any]) -> None:
    first = judge(tmp_path, replace(PROGRAMME, repeats=1))
    first.run()
    before = len(instant)
    again = judge(tmp_path)
    assert again.remaining_s() > 0
    again.run()
    assert [name for name, _ in instant[before:]] == [DRIVING_IN, "trigger-0", "static-0.25-fair", "slo-edf"]
    assert again.remaining_s() == 0
    done = len(instant)
    judge(tmp_path).run()
    assert len(instant) == done


def test_a_wider_programme_calibrates_what_is_new(tmp_path: Path, instant: list[Any]) -> None:
    judge(tmp_path, replace(PROGRAMME, repeats=1)).run()
    known = read_results(tmp_path)["calibration"]["query_sets"]
    before = len(instant)
    wider = judge(tmp_path, Programme(parts=(Part("cells", ("equal-8-u",), (0.5,), ("slo-edf",)),), repeats=1))
    wider.run()
    assert [name for name, _ in instant[before:]] == [DRIVING_IN, "trigger-0", "slo-edf"]
    assert set(wider.store.data["calibration"]["query_sets"]) == {*known, "lr1+lr2+lr3"}


def test_other_settings_do_not_go_on_with_the_same_results(tmp_path: Path, instant: list[Any]) -> None:
    judge(tmp_path).store.save()
    with pytest.raises(BadParameter, match=r"measure_s 60\.0 \(now 30\.0\)"):
        Store(tmp_path, "", SETTINGS | {"measure_s": 30.0})


def test_a_jvm_is_driven_in_once_for_each_number_of_cores_and_with_all_queries(
    tmp_path: Path, instant: list[Any]
) -> None:
    part = Part("scaling", ("equal-8-u", "mixed-u"), (0.35,), ("slo-edf",), (1, 2))
    judge(tmp_path, Programme(parts=(part,), repeats=2)).run()
    driven = [
        {query.name for query in cell.queries} for _, cell in Instant.cells if cell.longest_settle_s == DRIVE_IN_S
    ]
    everything = {"alerts", "lr1", "lr2", "lr3"}
    assert driven == [everything, everything]


@pytest.mark.parametrize(
    ("thefts", "runs", "counts"),
    [([0.2, 0.9], 1, 0.2), ([0.9, 0.1, 0.9], 2, 0.1), ([0.9, 0.6, 0.7, 0.0], 3, 0.6)],
)
def test_a_cell_from_which_the_host_took_the_cores_is_measured_again(
    thefts: list[float], runs: int, counts: float, tmp_path: Path, instant: list[Any]
) -> None:
    judged = judge(tmp_path)
    judged.run()
    before = len(Instant.cells)
    Instant.thefts.extend(reversed(thefts))
    with Instant(find_contender("slo-edf"), Jvm()) as app:
        measured = judged.runner.cell(cast(Any, app), find_scenario("mixed-u"), 0.5, "mixed", 0)
    assert len(Instant.cells) - before == runs
    assert measured.found.stolen == counts


def test_scaling_runs_on_other_numbers_of_cores_too(tmp_path: Path, instant: list[Any]) -> None:
    part = Part("scaling", ("equal-8-u",), (0.35,), ("slo-edf",), (1, 2))
    judged = judge(tmp_path, Programme(parts=(part,), repeats=1))
    judged.run()
    assert [cores for name, cores in instant if name == "slo-edf"] == [2, 1]
    assert sorted(run["cores"] for run in judged.store.data["runs"]) == [1, 2]


def test_results_are_read_back_or_refused(tmp_path: Path, instant: list[Any]) -> None:
    judge(tmp_path).run()
    assert read_results(tmp_path) == read_results(tmp_path / "results.json")
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(BadParameter, match="format None"):
        read_results(tmp_path / "other.json")
    with pytest.raises(BadParameter, match="no such file"):
        read_results(tmp_path / "nothing")


def test_the_programmes_name_only_what_exists() -> None:
    for programme in (full(2), quick()):
        for name in programme.scenarios:
            assert name in SCENARIOS
        for name in (name for part in programme.parts for name in part.contenders if name != BEST):
            assert find_contender(name).name == name


def test_a_programme_can_be_narrowed() -> None:
    narrow = full(2).only_parts(("mixed", "capacity")).only_scenarios(("mixed-bursty",))
    assert narrow.scenarios == ["mixed-bursty"]
    assert {part.name for part in narrow.parts} == {"mixed"}
    assert narrow.saturation == ()
    two = full(2).only_contenders((BEST, "slo-edf"))
    assert {name for part in two.parts for name in part.contenders} == {BEST, "slo-edf"}
    assert two.saturation == ("slo-edf",)
    assert two.capacity_contenders == (BEST, "slo-edf")
    assert full(2).only_contenders(("static-0.5-fair",)).capacity_contenders == ("static-0.5-fair",)


def test_other_traffic_stands_in_for_the_same_promises() -> None:
    constant = full(2).only_scenarios(("mixed-constant", "equal-8-diurnal"))
    assert set(constant.scenarios) - {"mixed-u"} == {"mixed-constant", "equal-8-diurnal"}
    assert constant.capacity == ("mixed-constant", "equal-8-diurnal")
    assert {part.name for part in constant.parts} == {"mixed", "cells", "modules"}


def test_windows_hold_full_state_and_whole_bursts() -> None:
    for programme in (full(2), quick()):
        assert programme.settle_s >= 35
        assert programme.measure_s % BURST_EVERY_S == 0


def test_one_cell_has_everybody_in_every_repeat() -> None:
    always = {
        (name, s) for part in full(2).parts if not part.repeats for name in part.contenders for s in part.scenarios
    }
    everybody = (*PAPERS, "sb-fifo", "sb-fair", "slo-edf", "admission-only", "scheduling-only")
    assert {(name, "equal-8-u") for name in everybody} <= always
    once = [part for part in full(2).parts if part.repeats == 1 and part.name == "cells"]
    assert {(name, s) for part in once for name in part.contenders for s in part.scenarios} == {
        (name, scenario) for name in PAPERS for scenario in ("equal-5-u", "equal-8-u", "equal-10-u")
    }


def test_fewer_cores_are_measured_with_the_papers_systems_too() -> None:
    [scaling] = [part for part in full(2).parts if part.name == "scaling"]
    assert scaling.scenarios == ("equal-10-u",)
    assert set(scaling.contenders) == {"sb-fifo", "sb-fair", "zstream-edf", "slo-edf"}


def test_nobody_keeps_the_machine_for_long(tmp_path: Path) -> None:
    judged = judge(tmp_path, full(2))
    visits = list(judged.visits())
    assert max(judged.visit_s(visit) for visit in visits) <= 1.15 * LONGEST_VISIT_S
    # Seven cells each, six of them far below what the machine can do: its speed hardly matters there.
    assert apart_s(judged, "slo-edf", "sb-fair") <= 1.75 * LONGEST_VISIT_S
    for candidate in SWEEP[1:3]:
        assert apart_s(judged, "slo-edf", candidate) <= 1.15 * LONGEST_VISIT_S


def test_a_long_visit_is_two_rounds(tmp_path: Path) -> None:
    cells = ("equal-5-u", "equal-8-u", "equal-10-u")
    part = Part("cells", cells, (0.7, 0.8), ("slo-edf",))
    judged = judge(tmp_path, Programme(parts=(part,), capacity=cells, capacity_contenders=("slo-edf",), repeats=1))
    assert [(len(visit.cells), len(visit.searches)) for visit in judged.visits()] == [(6, 0), (0, 3)]


def apart_s(judged: Judge, one: str, other: str) -> float:
    """The longest time between the beginnings of two contenders' visits with the same cell or search."""
    begun_s, now_s = dict[Any, float](), 0.0
    for visit in judged.visits():
        for what in (*visit.cells, *visit.searches):
            begun_s[visit.contender.name, visit.repeat, visit.cores, what] = now_s
        now_s += judged.visit_s(visit)
    return max(abs(at_s - begun_s[other, *what]) for (name, *what), at_s in begun_s.items()
               if name == one and (other, *what) in begun_s)  # fmt: skip


def test_no_query_has_a_share_of_its_own_where_deadlines_are_equal(tmp_path: Path, instant: list[Any]) -> None:
    both = ("static-0.25-fair", "static-0.25-0.5-fair")
    judged = judge(tmp_path, Programme(capacity=("equal-5-u", "mixed-u"), repeats=1, sweep=both))
    judged.run()
    tried = {(entry["scenario"], entry["contender"]) for entry in judged.store.data["sweep"]}
    assert tried == {("equal-5-u", both[0]), ("mixed-u", both[0]), ("mixed-u", both[1])}
