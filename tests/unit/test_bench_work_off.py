"""Cells with a finite amount of work, and what differs between contenders' sessions. No Spark."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from headgate.bench import contender as contender_module
from headgate.bench.contender import KEEP_HEAP, Bench, session_settings
from headgate.bench.linear_road.scenarios import SWEEP, find_contender
from headgate.bench.plan import BenchQuery, Cell, Contender

CELL = Cell((BenchQuery("lr1", 30.0, "B(200)"), BenchQuery("lr2", 30.0, "B(200)")), 0.0, 60.0, rows=1_000)


class Clockwork:
    """A clock that moves when somebody sleeps, and queries that finish 100 and 50 rows in every second of it."""

    SPEEDS = {"lr1": 50, "lr2": 100}  # noqa: RUF012
    FIRST_AT_S = 1_000.0

    def __init__(self) -> None:
        self.now_s = self.FIRST_AT_S + 1

    def time(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds

    def batches(self, query: str | None = None) -> list[Any]:
        names = self.SPEEDS if query is None else [query]
        return [SimpleNamespace(oldest_at_s=self.FIRST_AT_S, finished_at_s=self._finished_at_s(name)) for name in names]

    def summaries(self) -> dict[str, Any]:
        taken_s = self.now_s - self.FIRST_AT_S
        rows = {name: min(1_000, int(speed * taken_s + 1e-6)) for name, speed in self.SPEEDS.items()}
        return {name: SimpleNamespace(datasets=done) for name, done in rows.items()}

    def _finished_at_s(self, name: str) -> float:
        return min(self.now_s, self.FIRST_AT_S + 1_000 / self.SPEEDS[name])


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Bench:
    clockwork = Clockwork()
    monkeypatch.setattr(contender_module, "time", clockwork)
    made = Bench(Contender("trigger-0", "t"), cast(Any, SimpleNamespace(recorder=clockwork)), str(tmp_path))
    monkeypatch.setattr(made, "_cpu_s", lambda: 1.0)
    return made


def test_it_tells_when_each_query_had_done_its_rows(bench: Bench) -> None:
    found = bench._work_off(CELL, 1_000)
    assert {name: query["done_s"] for name, query in found.queries.items()} == {
        "lr1": pytest.approx(20.0), "lr2": pytest.approx(10.0),
    }  # fmt: skip
    assert found.measured_s == pytest.approx(20.0, abs=0.5)


def test_one_that_takes_too_long_has_not_finished(bench: Bench) -> None:
    found = bench._work_off(Cell(CELL.queries, 0.0, 12.0, rows=1_000), 1_000)
    assert found.queries["lr1"]["done_s"] is None
    assert found.queries["lr1"]["rows"] < 1_000
    assert found.queries["lr2"]["done_s"] == pytest.approx(10.0)


def test_the_source_ends_with_the_rows(bench: Bench) -> None:
    class Reader:
        def __init__(self) -> None:
            self.options: dict[str, str] = {}

        def format(self, _: str) -> Reader:
            return self

        def option(self, name: str, value: str) -> Reader:
            self.options[name] = value
            return self

        def load(self) -> dict[str, str]:
            return self.options

    bench.hg = cast(Any, SimpleNamespace(readStream=Reader()))
    assert cast(Any, bench._from_trace(CELL, CELL.queries[0]))["rows"] == "1000"


def test_contenders_sessions_differ_in_the_scheduler_and_the_slots_alone() -> None:
    for setting in (find_contender(name) for name in SWEEP):
        conf = {"spark.scheduler.mode": setting.mode, "spark.driver.extraJavaOptions": KEEP_HEAP}
        assert session_settings(setting) == {"master": "local[*]" if setting.plain_slots else None, "conf": conf}
