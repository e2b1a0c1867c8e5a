"""Whatever happens to Headgate's own parts, the query goes on, loses nothing and repeats nothing."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import psutil
import pytest
from pyspark.sql import SparkSession

from headgate import Headgate
from headgate.core.cost import CostModel
from headgate.errors import HeadgateError
from tests.spark.conftest import Collected, counter, named, until

pytestmark = pytest.mark.spark

SOON_S = 6.0
"""Less than two on a quiet machine; far from the half minute and more that a closed gate would hold a batch, so that a
host that takes the cores away for some seconds fails nothing."""


class Gates:
    """The planning processes that came up during a test.

    Spark leaves one behind when a query is stopped while it is still starting; those of earlier tests do not count.
    """

    def __init__(self) -> None:
        self._before = set(self._all())

    def alive(self) -> list[psutil.Process]:
        return [process for process in self._all() if process not in self._before]

    def _all(self) -> list[psutil.Process]:
        found = []
        for process in psutil.Process().children(recursive=True):
            try:
                if "python_streaming_source_runner" in " ".join(process.cmdline()):
                    found.append(process)
            except psutil.NoSuchProcess:
                continue
        return found


@pytest.fixture
def gates() -> Gates:
    return Gates()


def test_coordinator_gone_the_query_goes_on_as_plain_spark(hg: Headgate, collected: Collected) -> None:
    query = hg.start(named(counter(hg, "500"), "orphan", collected), deadline="30s", admission="latest")
    until(lambda: query.status["isDataAvailable"] or len(collected.batches) >= 4, 90)
    until(lambda: any(status.gate == "holds" for status in hg.status()), 90)
    batches = len(collected.batches)
    hg._coordinator.stop()
    stopped_at_s = time.time()
    until(lambda: len(collected.batches) > batches, 20)
    # Held by a closed gate the batch would have waited for most of its 30 s.
    newest = max(row[0].timestamp() for row in collected.batches[max(collected.batches)])
    assert newest - stopped_at_s < SOON_S
    until(lambda: len(collected.batches) > batches + 3, 20)
    values = [row[1] for row in collected.rows]
    assert values == list(range(len(values)))


def test_a_killed_gate_process_is_replaced_and_nothing_is_lost_or_twice(
    hg: Headgate, collected: Collected, gates: Gates
) -> None:
    query = hg.start(named(counter(hg, "500", rows=8_000), "killed", collected), deadline="2s")
    until(lambda: len(collected.rows) > 1_000, 90)
    (gate,) = gates.alive()
    os.kill(gate.pid, signal.SIGKILL)
    until(lambda: len(collected.rows) >= 8_000, 90)
    assert [row[1] for row in collected.rows] == list(range(8_000))
    assert query.restarts == 1
    assert query.isActive


def test_whoever_waits_for_a_query_does_not_see_its_gate_die(hg: Headgate, collected: Collected, gates: Gates) -> None:
    query = hg.start(named(counter(hg, "500"), "awaited", collected), deadline="60s", admission="latest")
    until(lambda: any(status.gate == "holds" for status in hg.status()), 90)
    (gate,) = gates.alive()
    killer = threading.Timer(0.5, gate.kill)
    killer.start()
    assert query.awaitTermination(6) is False
    assert query.restarts == 1 and query.isActive


def test_a_model_with_nonsense_in_it_does_not_hold_anything(hg: Headgate, collected: Collected) -> None:
    query = hg.start(named(counter(hg, "500"), "nonsense", collected), deadline="60s", admission="latest")
    until(lambda: collected.batches)
    state = hg._coordinator.dispatcher.queries["nonsense"]
    hg._coordinator.call(lambda: setattr(state, "cost", CostModel(batches=9, fixed_s=float("nan"))))
    batches = len(collected.batches)
    until(lambda: len(collected.batches) > batches + 1, 30)
    assert query.isActive
    until(lambda: state.cost.sound)


def test_a_query_that_ends_as_the_coordinator_does_leaves_nothing_behind(
    hg: Headgate, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = hg.start(named(counter(hg, "500"), "last"), deadline="2s")
    until(lambda: query.batches, 90)

    def ended_meanwhile(function: object) -> None:
        raise HeadgateError("Headgate has been stopped")

    monkeypatch.setattr(hg._coordinator, "call", ended_meanwhile)
    query.stop()
    until(lambda: "last" not in hg._checkpoints and "last" not in hg._temporary)
    assert "last" not in hg._queries


def test_stop_is_quick_while_the_gate_holds(hg: Headgate) -> None:
    query = hg.start(named(counter(hg, "500"), "stopped"), deadline="60s", admission="latest")
    until(lambda: any(status.gate == "holds" for status in hg.status()), 90)
    begun_s = time.monotonic()
    query.stop()
    assert time.monotonic() - begun_s < SOON_S
    assert not query.isActive


def test_stop_is_quick_while_idle_and_while_running(hg: Headgate) -> None:
    idle = hg.start(named(counter(hg, "500", rows=100), "idle"), deadline="5s")
    busy = hg.start(named(counter(hg, "5000"), "busy"), deadline="1s")
    until(lambda: len(busy.batches) >= 2 and idle.batches, 60)
    for query in (idle, busy):
        begun_s = time.monotonic()
        query.stop()
        assert time.monotonic() - begun_s < SOON_S


def test_everything_stops_soon_while_all_gates_hold(spark: SparkSession, tmp_path: Path, gates: Gates) -> None:
    hg = Headgate(spark, records=tmp_path / "batches.jsonl")
    for index in range(4):
        hg.start(named(counter(hg, "100"), f"q{index}"), deadline="60s", admission="latest")
    until(lambda: sum(status.gate == "holds" for status in hg.status()) == 4, 120)
    begun_s = time.monotonic()
    hg.stop()
    assert time.monotonic() - begun_s < SOON_S
    until(lambda: not gates.alive(), 10)


def test_a_failing_user_function_is_the_users_to_see(hg: Headgate) -> None:
    def fail(df: object, batch_id: int) -> None:
        raise ValueError("the user's own trouble: Connection reset by a database")

    query = hg.start(counter(hg, "500").writeStream.queryName("failing").foreachBatch(fail), deadline="2s")
    with pytest.raises(Exception, match="the user's own trouble"):
        query.awaitTermination(60)
    assert query.restarts == 0
    until(lambda: "failing" not in hg._queries)
