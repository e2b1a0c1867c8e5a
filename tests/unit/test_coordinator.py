"""Gate and coordinator over a real socket, without Spark: who may talk, what is answered, and failing open."""

from __future__ import annotations

import math
import os
import socket
import stat
import threading
import time
from collections.abc import Iterator, Sized
from pathlib import Path

import pytest

from headgate import wire
from headgate.core.admission import Decision, find_rule
from headgate.core.arrivals import Arrivals
from headgate.core.batch import BatchRecord
from headgate.core.cost import CostModel
from headgate.core.dispatcher import Dispatcher, Progress
from headgate.core.policies import Share, edf
from headgate.core.query_state import GateConfig
from headgate.core.snapshot import Promise
from headgate.engine.coordinator import Coordinator
from headgate.errors import BadParameter, HeadgateError
from headgate.sources import gate_client
from headgate.sources.feed import Taken
from headgate.sources.gate_client import GateClient, Nothing, Opened, Wait
from tests.making import model

SOON_S = 4.0
"""Milliseconds on a quiet machine; less than whatever would else be waited for, and room for a busy one."""


class Bench:
    """A coordinator with what it did."""

    def __init__(self, socket_dir: str) -> None:
        self.records: list[BatchRecord] = []
        self.shares: list[dict[str, Share]] = []
        dispatcher = Dispatcher(2, edf, "edf")
        self.coordinator = Coordinator(dispatcher, self.shares.append, lambda r, a: self.records.append(r), socket_dir)
        self.coordinator.start()

    def add(
        self, name: str, *gates: str, rule: str = "latest", deadline_s: float = 5.0, cost: CostModel | None = None
    ) -> None:
        config = GateConfig(name, Promise(deadline_s), find_rule(rule), rule)

        def register() -> None:
            self.coordinator.dispatcher.add(config, cost or model())
            self.coordinator.expect(name, list(gates))

        self.coordinator.call(register)

    def client(self, gate: str) -> GateClient:
        return GateClient(self.coordinator.address.folder, gate)


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine an answer may take its time; what is tested here is the answer."""
    monkeypatch.setattr(gate_client, "REPLY_TIMEOUT_S", 10.0)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(str(tmp_path))
    yield made
    made.coordinator.stop()


def test_only_this_user_can_reach_the_socket(bench: Bench) -> None:
    folder = bench.coordinator.address.folder
    assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700
    assert stat.S_IMODE(os.stat(f"{folder}/key").st_mode) == 0o600
    assert stat.S_IMODE(os.stat(f"{folder}/gate.sock").st_mode) == 0o600


def test_without_the_key_nobody_is_heard(bench: Bench) -> None:
    bench.add("q", "g")
    connection, _ = wire.connect(bench.coordinator.address, 1.0)
    wire.send(connection, {"op": "hello", "gate": "g", "pid": 1, "proof": "0" * 64})
    with pytest.raises((EOFError, OSError)):
        wire.receive(connection)
    assert bench.coordinator.call(bench.coordinator.awaited) == {"q"}


def test_whoever_asks_before_hello_is_dropped(bench: Bench) -> None:
    connection, _ = wire.connect(bench.coordinator.address, 1.0)
    wire.send(connection, {"op": "ask", "rows": 1, "age_s": 0})
    with pytest.raises((EOFError, OSError)):
        wire.receive(connection)


def test_a_stranger_that_says_nothing_or_rubbish_delays_nobody(bench: Bench) -> None:
    bench.add("q", "g")
    silent = socket.socket(socket.AF_UNIX)
    silent.connect(bench.coordinator.address.socket)
    rubbish, _ = wire.connect(bench.coordinator.address, 1.0)
    rubbish.send_bytes(b"\xff not json")
    assert isinstance(bench.client("g").ask(10, time.time(), time.time()), Wait)
    silent.close()


def test_a_gate_that_goes_while_it_holds_is_not_waited_for(bench: Bench) -> None:
    bench.add("q", "g")
    client = bench.client("g")
    assert isinstance(client.ask(10, time.time(), time.time()), Wait)
    assert client._connection is not None
    client._connection.close()
    give_up_s = time.monotonic() + SOON_S
    while bench.coordinator.call(lambda: bench.coordinator.dispatcher.queries["q"].holding) is not None:
        assert time.monotonic() < give_up_s
        time.sleep(0.01)


def test_a_gate_is_held_and_opened(bench: Bench) -> None:
    bench.add("q", "g")
    client = bench.client("g")
    now_s = time.time()
    held = client.ask(1_000, now_s, now_s)
    assert isinstance(held, Wait) and 1.0 < held.seconds <= 1.25
    assert client.ask(1_000, now_s - 4.99, now_s) == Opened(None)


def test_nothing_waits(bench: Bench) -> None:
    bench.add("q", "g")
    assert isinstance(bench.client("g").ask(0, None, time.time()), Nothing)


def test_the_same_gate_in_two_queries_is_bound_in_the_order_of_their_starts(bench: Bench) -> None:
    bench.add("first", "g", rule="observe")
    one = bench.client("g")
    assert one.greet()
    bench.add("second", "g")
    key = bench.coordinator.call(lambda: dict(bench.coordinator._bound))
    assert list(key.values()) == [("first", 0)]
    assert bench.coordinator.call(bench.coordinator.awaited) == {"second"}


def test_an_unknown_gate_runs_open_and_is_told_once(bench: Bench, capfd: pytest.CaptureFixture[str]) -> None:
    client = bench.client("never started")
    assert client.ask(5, time.time(), time.time()) == Opened(None)
    assert client.ask(5, time.time(), time.time()) == Opened(None)
    assert capfd.readouterr().err.count("Headgate.start()") == 1


def test_the_end_of_a_batch_wakes_the_gate_that_waits_for_it(bench: Bench) -> None:
    bench.add("runs", "a", rule="observe")
    bench.add("waits", "b", rule="slo", deadline_s=60.0)
    bench.add("runs too", "c", rule="observe")
    running, waiting, another = bench.client("a"), bench.client("b"), bench.client("c")
    now_s = time.time()
    assert running.ask(1_000, now_s, now_s) == another.ask(1_000, now_s, now_s) == Opened(None)
    verdict = waiting.ask(1_000, now_s - 40.0, now_s)
    assert isinstance(verdict, Wait) and verdict.seconds > 5.0
    ender = threading.Timer(0.1, lambda: [batch.ask(0, None, time.time()) for batch in (running, another)])
    begun_s = time.monotonic()
    ender.start()
    waiting.wait(verdict.seconds)
    assert time.monotonic() - begun_s < SOON_S
    assert waiting.ask(1_000, now_s - 40.0, now_s) == Opened(None)


def test_a_batch_is_recorded_from_took_to_progress(bench: Bench) -> None:
    bench.add("q", "g", rule="observe")
    client = bench.client("g")
    now_s = time.time()
    client.ask(100, now_s - 1.0, now_s)
    client.took(Taken({}, 100, Arrivals.of([(now_s - 1.0, 0.01, 100)])), 0)
    client.planned(["orders-0[0:60]", "orders-1[0:40]"])
    client.ask(0, None, time.time())
    bench.coordinator.progress(Progress("q", 0, now_s - 0.1, time.time() + 0.5, 100, {"triggerExecution": 600}))
    bench.coordinator.call(lambda: None)
    (record,) = bench.records
    assert record.rows == 100 and record.latency is not None and record.latency.max_s > 1.0
    assert record.shares == ("orders-0[0:60]", "orders-1[0:40]")


def test_shares_that_make_no_sense_do_not_stop_the_coordinator(bench: Bench) -> None:
    bench.add("q", "g")
    client = bench.client("g")
    client.planned(["before it is known whose gate this is"])
    client.greet()
    client._tell({"op": "planned"})
    assert isinstance(client.ask(10, time.time(), time.time()), Wait)
    assert bench.coordinator.alive


def test_pools_are_set_when_two_batches_run(bench: Bench) -> None:
    bench.add("a", "a", rule="observe", deadline_s=1.0)
    bench.add("b", "b", rule="observe", deadline_s=9.0)
    now_s = time.time()
    bench.client("a").ask(10, now_s, now_s)
    bench.client("b").ask(10, now_s, now_s)
    bench.coordinator.call(lambda: None)
    assert bench.shares[-1]["a"].min_share == 2
    assert bench.shares[-1]["b"].min_share == 0


def test_coordinator_gone_the_gate_opens_at_once_and_says_so_once(
    bench: Bench, capfd: pytest.CaptureFixture[str]
) -> None:
    bench.add("q", "g")
    client = bench.client("g")
    assert isinstance(client.ask(10, time.time(), time.time()), Wait)
    bench.coordinator.stop()
    begun_s = time.monotonic()
    client.wait(30.0)
    assert client.ask(10, time.time(), time.time()) == Opened(None)
    assert client.ask(10, time.time(), time.time()) == Opened(None)
    assert time.monotonic() - begun_s < SOON_S
    assert capfd.readouterr().err.count("plain Spark") == 1


def test_coordinator_stuck_the_gate_opens_soon(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate_client, "REPLY_TIMEOUT_S", 0.5)
    bench.add("q", "g")
    client = bench.client("g")
    client.greet()
    stuck, release = threading.Event(), threading.Event()
    bench.coordinator.post(lambda: [stuck.set(), release.wait(10)].clear())  # type: ignore[func-returns-value]
    assert stuck.wait(2)
    begun_s = time.monotonic()
    assert client.ask(10, time.time(), time.time()) == Opened(None)
    assert time.monotonic() - begun_s < SOON_S
    release.set()


def test_a_rule_that_fails_opens_the_gate_and_the_coordinator_lives(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.add("broken", "g")
    useless = Decision(False, "?", "until nobody knows when", until_s=math.nan)
    bench.coordinator.dispatcher.queries["broken"].config = GateConfig("broken", Promise(5.0), lambda *_: useless)
    client = bench.client("g")
    for _ in range(3):
        assert client.ask(10, time.time(), time.time()) == Opened(None)
    assert bench.coordinator.alive
    assert sum("plain Spark" in record.getMessage() for record in caplog.records) == 1


def test_pools_that_cannot_be_set_do_not_stop_decisions(bench: Bench) -> None:
    def fail(_: object) -> None:
        raise RuntimeError("no such field")

    bench.coordinator._apply_shares = fail
    for name in ("a", "b"):
        bench.add(name, name, rule="observe")
        assert bench.client(name).ask(10, time.time(), time.time()) == Opened(None)
    bench.add("c", "c")
    assert isinstance(bench.client("c").ask(10, time.time(), time.time()), Wait)


def test_a_gate_that_gives_up_while_connecting_hurts_nobody(bench: Bench) -> None:
    bench.add("q", "g")
    busy = threading.Event()
    bench.coordinator.post(lambda: [busy.wait(0.3)].clear())
    for _ in range(3):
        hasty = socket.socket(socket.AF_UNIX)
        hasty.connect(bench.coordinator.address.socket)
        hasty.close()
    assert isinstance(bench.client("g").ask(10, time.time(), time.time()), Wait)
    assert bench.coordinator.alive


def test_half_a_message_hurts_nobody(bench: Bench) -> None:
    bench.add("q", "g")
    half, _ = wire.connect(bench.coordinator.address, 1.0)
    os.write(half.fileno(), b"\x00\x00\x01\x00only a part")
    assert isinstance(bench.client("g").ask(10, time.time(), time.time()), Wait)
    assert bench.coordinator.alive


def test_after_the_end_a_call_says_so_at_once_and_wakes_nothing(bench: Bench) -> None:
    bench.coordinator.stop()
    begun_s = time.monotonic()
    with pytest.raises(HeadgateError, match="make a new Headgate"):
        bench.coordinator.call(lambda: None)
    bench.coordinator.post(lambda: None)
    assert time.monotonic() - begun_s < SOON_S


def test_queries_that_come_and_go_leave_no_trace(bench: Bench) -> None:
    def traces() -> int:
        c = bench.coordinator
        kept: list[Sized] = [
            c._expected,
            c._bound,
            c._state_dirs,
            c._started_at_s,
            c._gate_counts,
            c.dispatcher.queries,
        ]
        return sum(map(len, kept))

    for index in range(50):
        bench.add(f"q{index}", f"g{index}")
        client = bench.client(f"g{index}")
        client.greet()
        client.close()
        bench.coordinator.call(lambda index=index: bench.coordinator.forget(f"q{index}"))  # type: ignore[misc]
    assert bench.coordinator.call(traces) == 0


def test_a_gate_of_an_earlier_run_does_not_speak_for_the_new_one(bench: Bench) -> None:
    bench.add("q", "g", rule="observe")
    old = bench.client("g")
    assert old.greet()
    bench.add("q", "g2")
    assert old.ask(10, time.time(), time.time()) == Opened(None)
    assert bench.coordinator.dispatcher.queries["q"].gates == {}


def test_stopping_leaves_nothing_behind(tmp_path: Path) -> None:
    made = Bench(str(tmp_path))
    begun_s = time.monotonic()
    made.coordinator.stop()
    made.coordinator.stop()
    assert time.monotonic() - begun_s < SOON_S
    assert list(tmp_path.iterdir()) == []


def test_two_coordinators_live_side_by_side(bench: Bench, tmp_path: Path) -> None:
    other = Bench(str(tmp_path))
    other.add("q", "g", rule="observe")
    bench.add("q", "g")
    now_s = time.time()
    assert other.client("g").ask(5, now_s, now_s) == Opened(None)
    assert isinstance(bench.client("g").ask(5, now_s, now_s), Wait)
    other.coordinator.stop()


def test_an_unusable_socket_folder_is_refused_with_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(BadParameter, match=r"socket_dir=.*name an existing folder"):
        wire.create_address(str(tmp_path / "missing"))
    deep = tmp_path / ("d" * 60) / ("e" * 60)
    deep.mkdir(parents=True)
    with pytest.raises(BadParameter, match="too long"):
        wire.create_address(str(deep))
    assert list(deep.iterdir()) == []
