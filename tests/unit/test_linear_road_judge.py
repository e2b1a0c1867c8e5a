"""What the judge runs and in which order, with applications that answer at once. No Spark."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headgate.bench.linear_road import runner as running
from headgate.bench.linear_road.judge import Judge
from headgate.bench.linear_road.programmes import BEST, Part, Programme, full, quick
from headgate.bench.linear_road.scenarios import SCENARIOS, find_contender, static, traffic_text
from headgate.bench.linear_road.store import Store, read_results
from headgate.bench.plan import Cell, Contender, Outcome
from headgate.core.traffic import parse_traffic
from headgate.errors import BadParameter

SETTINGS = {"repeats": 2, "measure_s": 60.0, "settle_s": 15.0, "seed": 1, "parts": []}
PROGRAMME = Programme(
    parts=(Part("mixed", ("mixed-u",), (0.5,), ("trigger-0", BEST, "slo-edf")),),
    capacity=("mixed-u",),
    saturation=("trigger-0",),
    repeats=2,
    sweep=("trigger-0", "static-0.25-fair", "static-0-fifo", "static-0.25-fifo"),
)


class Instant:
    """An application whose queries keep their promises up to a capacity: Headgate's is higher, a quarter is best."""

    started: list[tuple[str, int | None]] = []  # noqa: RUF012 - shared on purpose: one list for all applications

    def __init__(self, contender: Contender, cores: int | None = None, kafka: str | None = None) -> None:
        self.contender = contender
        self.started.append((contender.name, cores))

    def __enter__(self) -> Instant:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def run(self, cell: Cell) -> Outcome:
        return Outcome(
            self.contender.name, self.contender.title, 10.0, 60.0, {q.name: self._found(cell, q) for q in cell.queries}
        )

    def _found(self, cell: Cell, query: Any) -> dict[str, Any]:
        rate = parse_traffic(query.rate, 1).mean_rate
        share = self.contender.trigger_share if query.trigger_s is None else query.trigger_s / query.deadline_s
        most = 9_000 if share is None else 6_000 if share == 0.25 and self.contender.mode == "FAIR" else 4_000
        most = 2_000 if share == 0.5 else most
        late = 0.0 if rate <= most else 0.5
        rows = int(rate * (query.trigger_s or 1.0))
        return {
            "violation_rate": late, "keeps_promise": not late, "rows": rows, "rows_per_s": min(rate, 10_000.0),
            "batch_times": [(rows, 0.2 + 2e-5 * rows)] * 3,
        }  # fmt: skip


@pytest.fixture
def instant(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int | None]]:
    started: list[tuple[str, int | None]] = []
    monkeypatch.setattr(Instant, "started", started)
    monkeypatch.setattr(running, "Application", Instant)
    return started


def judge(folder: Path, programme: Programme = PROGRAMME) -> Judge:
    return Judge(programme, Store(folder, "headgate bench linear-road", SETTINGS), 2, lambda *_: None)


def test_contenders_take_turns_and_every_turn_is_a_fresh_application(tmp_path: Path, instant: list[Any]) -> None:
    judge(tmp_path).run()
    calibration, fair, fifo, *turns = [name for name, _ in instant]
    assert (calibration, fair, fifo) == ("trigger-0", "trigger-0", "static-0-fifo")
    assert turns == ["trigger-0", "static-0.25-fair", "slo-edf"] * 2


def test_the_sweep_finds_the_best_setting_and_the_search_our_capacity(tmp_path: Path, instant: list[Any]) -> None:
    judged = judge(tmp_path)
    judged.run()
    assert judged.store.data["best_static"] == {"mixed-u": "static-0.25-fair"}
    found = {(e["contender"], e["repeat"]): e["rate"] for e in judged.store.data["capacity"]}
    assert found["slo-edf", 1] == pytest.approx(9_000, rel=0.08)
    assert found["static-0.25-fair", 1] == pytest.approx(6_000, rel=0.08)


def test_a_setting_that_is_far_behind_is_not_tried_again_with_the_same_queries(
    tmp_path: Path, instant: list[Any]
) -> None:
    settings = ("trigger-0", "static-0.25-fair", "static-0.5-fair")
    judged = judge(tmp_path, Programme(capacity=("mixed-u", "mixed-bursty", "equal-5-u"), repeats=1, sweep=settings))
    assert judged.remaining_s() > 0
    judged.run()
    tried = {(entry["scenario"], entry["contender"]) for entry in judged.store.data["sweep"]}
    everything = {(name, setting) for name in ("mixed-u", "mixed-bursty", "equal-5-u") for setting in settings}
    assert everything - tried == {("mixed-bursty", "static-0.5-fair")}
    assert set(judged.store.data["best_static"].values()) == {"static-0.25-fair"}


def test_what_was_interrupted_goes_on_where_it_stopped(tmp_path: Path, instant: list[Any]) -> None:
    first = judge(tmp_path, replace(PROGRAMME, repeats=1))
    first.run()
    before = len(instant)
    again = judge(tmp_path)
    assert again.remaining_s() > 0
    again.run()
    assert [name for name, _ in instant[before:]] == ["trigger-0", "static-0.25-fair", "slo-edf"]
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
    assert [name for name, _ in instant[before:]] == ["trigger-0", "slo-edf"]
    assert set(wider.store.data["calibration"]["query_sets"]) == {*known, "lr1+lr2+lr3"}


def test_other_settings_do_not_go_on_with_the_same_results(tmp_path: Path, instant: list[Any]) -> None:
    judge(tmp_path).store.save()
    with pytest.raises(BadParameter, match=r"measure_s=60"):
        Store(tmp_path, "", SETTINGS | {"measure_s": 30.0})


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


def test_a_rate_is_the_mean_whatever_the_traffic() -> None:
    for kind in ("U", "B", "bursty"):
        assert parse_traffic(traffic_text(kind, 9_000), 1).mean_rate == pytest.approx(9_000, rel=0.01)


def test_static_settings_have_one_name_each() -> None:
    assert static(0.0, "FAIR").name == "trigger-0"
    assert static(1.0, "FIFO").name == "sb-fifo"
    assert find_contender("static-0.25-fifo") == static(0.25, "FIFO")
    for nonsense in ("fastest", "static-x-fair", "static-0.5-lifo"):
        with pytest.raises(BadParameter, match=nonsense):
            find_contender(nonsense)
    assert static(0.25, "FIFO").stock and not find_contender("scheduling-only").stock
