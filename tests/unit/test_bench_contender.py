"""What a contender's cell measures: spans that fit together, and records that never got a result."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from headgate.bench.contender import Bench
from headgate.bench.latency_figures import cdf, latency_figures, quantile_s
from headgate.bench.plan import BenchQuery, Cell, Contender, Outcome
from headgate.core.arrivals import Arrivals
from headgate.core.batch import BatchRecord
from headgate.core.histogram import LatencyHistogram
from headgate.metrics.recorder import Recorder

DEADLINE_S = 4.0
RATE = 100


def finish(recorder: Recorder, rows: int, latency_s: float, batch_id: int, left_rows: int) -> None:
    """A batch whose records all came `latency_s` before its end."""
    now_s = time.time()
    arrivals = Arrivals.of([(now_s - latency_s, 0.0, rows)])
    recorder.add(
        BatchRecord(
            query="alerts", batch_id=batch_id, deadline_s=DEADLINE_S, slo=0.99, rows=rows,
            oldest_at_s=now_s - latency_s, asked_at_s=now_s - 1, opened_at_s=now_s - 1, finished_at_s=now_s, code="due",
            reason="", held_s={}, predicted_s=1.0, duration_s=1.0, overlap=0.0,
            latency=arrivals.latency(now_s, DEADLINE_S), estimated=False, left_rows=left_rows,
        ),
        arrivals,
    )  # fmt: skip


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Outcome]:
    """A cell without Spark: batches that finish within the measured time, and then while it waits for the rest."""

    def measure(
        within: list[tuple[int, float]], after: list[tuple[int, float]], begun_before_s: float,
        waits_s: float = 0.0, batch_id: int = 1,
    ) -> Outcome:  # fmt: skip
        recorder, cpu_s, now_s = Recorder(None), iter([10.0, 16.0, 99.0]), time.time()
        monkeypatch.setattr(time, "time", lambda: now_s)  # it stands still, however slow the machine is
        bench = Bench(Contender("trigger-0", "t"), cast(Any, SimpleNamespace(recorder=recorder, queries={})), "")

        def run(batches: list[tuple[int, float]]) -> None:
            for rows, latency_s in batches:
                finish(recorder, rows, latency_s, batch_id, left_rows=7)

        def drain(*_: object) -> None:
            run(after)
            monkeypatch.setattr(time, "time", lambda: now_s + waits_s)

        monkeypatch.setattr(bench, "_settle", lambda _: None)
        monkeypatch.setattr(bench, "_cpu_s", lambda: next(cpu_s))
        monkeypatch.setattr(bench, "_pause", lambda *_: run(within))
        monkeypatch.setattr(bench, "_drain", drain)
        cell = Cell((BenchQuery("alerts", DEADLINE_S, f"B({RATE})"),), 0.0, 1.0)
        return bench._measure(cell, {"alerts": time.time() - begun_before_s})

    return measure


def test_records_are_counted_over_the_same_time_as_cpu(measured: Callable[..., Outcome]) -> None:
    found = measured([(200, 1.0), (100, 1.0)], [(500, 1.0)], begun_before_s=8.0)
    assert found.cpu_s == 6.0
    assert found.queries["alerts"]["rows_in_window"] == 300
    assert found.queries["alerts"]["rows"] == 800


def test_rows_that_did_not_fit_into_a_batch_are_written_down(measured: Callable[..., Outcome]) -> None:
    assert measured([(200, 1.0)], [(600, 1.0)], begun_before_s=8.0).queries["alerts"]["left_rows"] == 14


def test_records_without_a_result_are_late_and_make_the_tail_infinite(measured: Callable[..., Outcome]) -> None:
    # 10 s at 100/s: 600 were due, 500 of them have a result
    found = measured([(500, 1.0)], [], begun_before_s=10.0).queries["alerts"]
    assert found["left_late_rows"] == 100
    assert found["violation_rate"] == pytest.approx(1 / 6)
    assert found["p50_s"] == pytest.approx(1.0, rel=0.03)
    assert (found["p95_s"], found["mean_s"], found["max_s"]) == (None, None, None)
    assert found["at_least_s"]["p95_s"] == DEADLINE_S
    assert not found["keeps_promise"]


def test_records_that_came_after_the_measured_time_are_none_that_were_left(measured: Callable[..., Outcome]) -> None:
    # 10 s at 100/s, then 6 s of waiting for the last records: all that came until then have a result, and no more
    found = measured([(1005, 1.0)], [], begun_before_s=10.0, waits_s=6.0).queries["alerts"]
    assert "left_late_rows" not in found
    assert found["max_s"] == pytest.approx(1.0)


def test_records_that_were_left_have_waited_since_the_end_at_least(measured: Callable[..., Outcome]) -> None:
    found = measured([(500, 1.0)], [], begun_before_s=10.0, waits_s=6.0).queries["alerts"]
    assert found["left_late_rows"] == 500
    assert found["at_least_s"]["p95_s"] == pytest.approx(6.0)


def test_a_first_batch_that_ends_within_the_measured_time_tells_when_the_traffic_began(
    measured: Callable[..., Outcome],
) -> None:
    # asked to start 20 s ago, but the first record came 8 s ago
    found = measured([(500, 8.0)], [], begun_before_s=20.0, batch_id=0).queries["alerts"]
    assert "left_late_rows" not in found


# ---- figures over records with and without a result


def histogram(*latencies_s: float) -> LatencyHistogram:
    made = LatencyHistogram()
    for latency_s in latencies_s:
        made.add(Arrivals.of([(0.0, 0.0, 1)]), latency_s)
    return made


def test_without_records_left_figures_are_those_of_the_finished_ones() -> None:
    latencies = histogram(*(float(second) for second in range(1, 11)))
    found = latency_figures(latencies, [3.0, 1.0, 2.0], 0, 5.0)
    assert [found[key] for key in ("p50_s", "p95_s", "max_s")] == [latencies.quantile(q) for q in (0.5, 0.95, 1.0)]
    assert found["mean_s"] == pytest.approx(5.5)
    assert found["cdf"][-1] == (10.0, 1.0)
    assert (found["batch_max_p95_s"], found["batch_max_cdf"][-1]) == (3.0, (3.0, 1.0))
    assert "at_least_s" not in found


def test_shares_are_of_all_records() -> None:
    latencies = histogram(*(float(second) for second in range(1, 81)))
    assert quantile_s(latencies, 0.8, 20) == 80.0
    assert quantile_s(latencies, 0.81, 20) is None
    assert quantile_s(latencies, 0.5, 20) == pytest.approx(50.0, rel=0.02)  # the 50th of 100, not the 40th of 80
    drawn = cdf(latencies, 20)
    assert drawn[-1] == (80.0, 0.8)
    assert drawn == sorted(drawn)


def test_records_that_were_left_are_a_batch_that_never_ended() -> None:
    found = latency_figures(histogram(*[1.0] * 30), [1.0] * 30, 5, 2.0)
    assert found["batch_max_cdf"][-1] == (1.0, 30 / 31)
    assert (found["batch_max_p95_s"], found["batch_max_p99_s"], found["batch_max_mean_s"]) == (1.0, None, None)
    assert found["at_least_s"]["batch_max_p99_s"] == 2.0
    assert found["at_least_s"]["mean_s"] == pytest.approx((30 * 1.0 + 5 * 2.0) / 35)
    assert found["at_least_s"]["max_s"] == 2.0
    assert latency_figures(histogram(9.0), [9.0], 1, 2.0)["at_least_s"]["max_s"] == 9.0


def test_a_query_that_finished_nothing_has_no_figures() -> None:
    for left in (0, 100):
        found = latency_figures(LatencyHistogram(), [], left, 2.0)
        assert (found["p50_s"], found["mean_s"], found["batch_max_p95_s"]) == (None, None, None)
        assert found["cdf"] == [] and found["batch_max_cdf"] == []


@pytest.mark.parametrize(("batches", "p95_s"), [(7, 7.0), (19, 19.0), (20, 19.0)])
def test_the_p95_of_fewer_than_twenty_batches_is_their_maximum(batches: int, p95_s: float) -> None:
    assert latency_figures(histogram(1.0), [float(n + 1) for n in range(batches)], 0, 2.0)["batch_max_p95_s"] == p95_s
