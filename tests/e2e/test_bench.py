"""A contender's application on a real Spark: what a benchmark believes must be true of small runs too."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
import time
from collections.abc import Iterator

import psutil
import pytest

from headgate.bench.application import Application
from headgate.bench.gauge import Gauge
from headgate.bench.jvm import Jvm
from headgate.bench.linear_road.scenarios import find_contender
from headgate.bench.plan import BenchQuery, Cell
from headgate.engine.session import SLOTS_PER_CORE, local_cores
from headgate.errors import HeadgateError

pytestmark = pytest.mark.e2e


def test_a_contender_measures_cell_after_cell() -> None:
    queries = (BenchQuery("alerts", 5.0, "B(500)"), BenchQuery("lr1", 20.0, "B(500)"))
    with Gauge() as gauge, Application(find_contender("slo-edf"), gauge=gauge) as app:
        gauge.reference_s = gauge.mean_s(0.0, time.time())
        first = app.run(Cell(queries, settle_s=12.0, measure_s=8.0))
        hopeless = (BenchQuery("alerts", 0.05, "B(500)"),)
        second = app.run(Cell(hopeless, settle_s=1.0, measure_s=60.0, give_up=True))
    assert set(first.queries) == {"alerts", "lr1"}
    assert not first.aborted
    assert 0.2 < first.slowness < 5.0 and first.slowness != 1.0
    assert first.cpu_s > 0 and 8.0 <= first.measured_s < 20.0
    for found in first.queries.values():
        # What arrived within the measured time is counted, whichever batch it was in.
        assert found["rows"] >= 0.7 * 500 * 8
        assert found["cdf"][-1][1] == 1.0
        assert found["batch_max_cdf"][-1][0] == pytest.approx(found["max_s"], rel=0.05)
    assert second.aborted and second.measured_s < 50.0
    assert not second.queries["alerts"]["keeps_promise"]


def test_contenders_have_a_spark_each_in_one_jvm() -> None:
    cell = Cell((BenchQuery("alerts", 5.0, "B(500)"),), settle_s=4.0, measure_s=4.0)
    with Jvm() as jvm:
        javas = []
        for name in ("sb-fifo", "slo-edf"):
            with Application(find_contender(name), jvm) as app:
                found = app.run(cell)
            assert found.contender == name and found.queries["alerts"]["rows"] > 0
            children = psutil.Process().children(recursive=True)
            javas.append({child.pid for child in children if child.name() == "java"})
            #  one Python worker for every slot and the process that they come from: none starts while queries run
            assert list(words(children)).count("pyspark.worker") >= SLOTS_PER_CORE * local_cores() + 1
        assert len(javas[0]) == 1 and javas[0] == javas[1]


def test_records_without_a_result_are_late() -> None:
    #  One batch a year: nothing that arrives after the first one has a result, and its deadline passes. Spark counts
    #  triggers from 1970 on, not from a query's start: the second batch of one every minute came within this test.
    queries = (BenchQuery("alerts", 2.0, "B(500)", trigger_s=365 * 86_400.0),)
    with Application(find_contender("sb-fifo")) as app:
        found = app.run(Cell(queries, settle_s=8.0, measure_s=6.0)).queries["alerts"]
    assert found["left_late_rows"] > 500
    assert not found["keeps_promise"]


def test_a_contender_that_is_killed_is_told() -> None:
    cell = Cell((BenchQuery("alerts", 5.0, "B(500)"),), settle_s=60.0, measure_s=60.0)
    with Application(find_contender("trigger-0")) as app, pytest.raises(HeadgateError, match="ended with code -9"):
        threading.Timer(6.0, _kill_contender).start()
        app.run(cell)


def _kill_contender() -> None:
    for child in psutil.Process().children():
        if "headgate.bench.contender" in child.cmdline():
            child.kill()


BENCHMARK = """
from headgate.bench.application import Application
from headgate.bench.gauge import Gauge
from headgate.bench.linear_road.scenarios import find_contender
from headgate.bench.plan import BenchQuery, Cell

with Gauge(), Application(find_contender("trigger-0")) as app:
    app.run(Cell((BenchQuery("alerts", 5.0, "B(500)"),), settle_s=600.0, measure_s=60.0))
"""


def test_a_benchmark_that_is_killed_leaves_nothing_running() -> None:
    def as_in_the_background() -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # what a shell does to commands that end with &

    benchmark = psutil.Popen([sys.executable, "-c", BENCHMARK], preexec_fn=as_in_the_background)
    #  Spark runs once its workers do; a JVM that is interrupted while it starts may stay, which is Spark's own matter
    started = {"headgate.bench.gauge", "headgate.bench.contender", "pyspark.daemon"}
    give_up_s = time.monotonic() + 60
    while not started <= set(words(children := benchmark.children(recursive=True))):
        assert time.monotonic() < give_up_s, "it has not started"
        time.sleep(0.2)
    benchmark.kill()
    benchmark.wait()
    _, alive = psutil.wait_procs(children, timeout=40)
    assert alive == []


def words(processes: list[psutil.Process]) -> Iterator[str]:
    """Of their command lines, as far as they are still there."""
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            yield from process.cmdline()


def test_a_contender_that_fails_says_why() -> None:
    nonsense = (BenchQuery("alerts", 5.0, "B(nothing)"),)
    with Application(find_contender("trigger-0")) as app, pytest.raises(HeadgateError, match=r"B\(nothing\)"):
        app.run(Cell(nonsense, settle_s=1.0, measure_s=1.0))
