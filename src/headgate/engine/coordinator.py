"""One per driver: a single thread that answers gates and feeds the dispatcher; observe, decide, apply.

Everything that changes state runs in this thread, so nothing needs a lock: other threads hand in functions with
:meth:`Coordinator.call`.
"""

from __future__ import annotations

import logging
import os
import queue
import selectors
import threading
from collections import defaultdict, deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, TypeVar

from headgate import wire
from headgate.core.arrivals import Arrivals
from headgate.core.batch import BatchRecord
from headgate.core.clock import Instant
from headgate.core.dispatcher import Answer, Dispatcher, Hold, Idle, Open, Pass, Progress
from headgate.core.policies import Share
from headgate.core.query_state import GateReport

log = logging.getLogger("headgate")
T = TypeVar("T")

CALL_TIMEOUT_S = 5.0
"""Longest time that a caller waits for this thread; its work takes milliseconds."""


@dataclass(slots=True, eq=False)
class Peer:
    """A connected gate process."""

    connection: Connection
    nonce: str
    query: str | None = None
    index: int = 0
    known: bool = False
    said_bye: bool = False
    holding: bool = False


class Coordinator:
    """Sockets and threads around a :class:`Dispatcher`."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        apply_shares: Callable[[dict[str, Share]], None],
        on_batch: Callable[[BatchRecord, Arrivals], None],
        socket_dir: str | None = None,
    ) -> None:
        self.dispatcher = dispatcher
        self.address = wire.create_address(socket_dir)
        self._apply_shares = apply_shares
        self._on_batch = on_batch
        self._calls: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._wake_read, self._wake_write = os.pipe()
        self._selector = selectors.DefaultSelector()
        self._peers: set[Peer] = set()
        self._expected: dict[str, deque[str]] = defaultdict(deque)
        self._bound: dict[tuple[str, int], tuple[str, int]] = {}
        self._state_dirs: dict[str, str] = {}
        self._started_at_s: dict[str, float] = {}
        self._gate_counts: dict[str, int] = defaultdict(int)
        self._crashed: set[str] = set()
        self._ran: frozenset[str] = frozenset()
        self._warned: set[str] = set()
        self._stopping = False
        self._key = self.address.key()
        self._listener = wire.listen(self.address)
        self._loop = threading.Thread(target=self._run, name="headgate-coordinator", daemon=True)

    # ---- from other threads

    def start(self) -> None:
        self._selector.register(self._wake_read, selectors.EVENT_READ, self._run_calls)
        self._selector.register(self._listener, selectors.EVENT_READ, self._accept)
        self._loop.start()

    def stop(self) -> None:
        """Open every gate and end; safe to call twice."""
        if self._stopping:
            return
        self._stopping = True
        self._wake()
        if self._loop.is_alive():
            self._loop.join(timeout=2.0)
        wire.remove(self.address)

    @property
    def alive(self) -> bool:
        return self._loop.is_alive() and not self._stopping

    def call(self, function: Callable[[], T]) -> T:
        """Run `function` in the coordinator's thread and return what it returns."""
        future: Future[T] = Future()
        self.post(lambda: _fulfil(future, function))
        return future.result(timeout=CALL_TIMEOUT_S)

    def post(self, function: Callable[[], None]) -> None:
        """Run `function` in the coordinator's thread, some time soon."""
        self._calls.put(function)
        self._wake()

    def expect(self, query: str, gates: list[str]) -> None:
        """The next processes that present these gates belong to `query`. Call it in the coordinator's thread."""
        self._gate_counts[query] = 0
        self._started_at_s[query] = Instant.now().wall_s
        self._crashed.discard(query)
        for gate in gates:
            self._expected[gate].append(query)

    def set_state_dir(self, query: str, state_dir: str) -> None:
        self._state_dirs[query] = state_dir

    def awaited(self) -> set[str]:
        """Queries whose gates have not presented themselves yet."""
        return {query for queries in self._expected.values() for query in queries}

    def forget(self, query: str) -> None:
        """The query has ended."""
        self.dispatcher.remove(query)
        self._state_dirs.pop(query, None)
        for expected in self._expected.values():
            while query in expected:
                expected.remove(query)
        self._bound = {key: value for key, value in self._bound.items() if value[0] != query}

    def crashed(self, query: str) -> bool:
        """Whether a gate process of `query` ended without saying goodbye."""
        return query in self._crashed

    def progress(self, progress: Progress) -> None:
        """Spark reports a batch (from the listener's thread)."""
        self.post(lambda: self._finished(progress))

    # ---- the loop

    def _run(self) -> None:
        try:
            while not self._stopping:
                for key, _ in self._selector.select():
                    key.data()
                self._settle()
        except Exception:
            log.exception("the coordinator failed: all queries go on as plain Spark, without deadlines")
        finally:
            self._close_all()

    def _settle(self) -> None:
        """After events: if the set of running batches changed, divide the cores anew and wake whom it concerns."""
        states = self.dispatcher.queries
        running = frozenset(f"{name}#{s.round.number}" for name, s in states.items() if s.round is not None)
        if running == self._ran:
            return
        self._ran = running
        now_s = Instant.now().mono_s
        nobody: list[str] = []
        for name in self._guarded("waking gates", lambda: self.dispatcher.wakeable(now_s), nobody):
            self._push_again(name)
        if len(running) > 1:  # alone, a batch has all cores whatever its share
            self._guarded("setting pools", lambda: self._apply_shares(self.dispatcher.shares(now_s)), None)

    def _guarded(self, what: str, function: Callable[[], T], default: T) -> T:
        """Headgate's own trouble must not stop a query: say it once and go on."""
        try:
            return function()
        except Exception as error:
            if what not in self._warned:
                self._warned.add(what)
                log.warning("%s failed (%r): queries go on as plain Spark would", what, error, exc_info=error)
            return default

    def _push_again(self, query: str) -> None:
        for peer in list(self._peers):
            if peer.query == query and peer.holding:
                peer.holding = False
                self._send(peer, {"again": True})

    # ---- gates

    def _accept(self) -> None:
        connection, nonce = wire.accept(self._listener)
        peer = Peer(connection, nonce)
        self._peers.add(peer)
        self._selector.register(connection, selectors.EVENT_READ, lambda: self._hear(peer))

    def _hear(self, peer: Peer) -> None:
        try:
            message = wire.receive(peer.connection)
        except (OSError, EOFError, ValueError):
            self._drop(peer)
            return
        handlers = {"ask": self._ask, "took": self._took, "bye": self._bye} if peer.known else {"hello": self._hello}
        handler = handlers.get(str(message.get("op")))
        if handler is None:
            self._drop(peer)
        else:
            handler(peer, message)

    def _hello(self, peer: Peer, message: wire.Message) -> None:
        if not wire.proves(self._key, peer.nonce, message.get("proof")):
            self._drop(peer)
            return
        peer.known = True
        gate = str(message.get("gate"))
        key = (gate, int(message.get("pid", 0)))
        if key not in self._bound and self._expected.get(gate):
            query = self._expected[gate].popleft()
            self._bound[key] = (query, self._gate_counts[query])
            self._gate_counts[query] += 1
        if key not in self._bound:
            self._send(peer, {"unknown": True})
            return
        peer.query, peer.index = self._bound[key]
        self._send(peer, self._introduction(peer.query))

    def _introduction(self, query: str) -> wire.Message:
        return {
            "query": query,
            "state_dir": self._state_dirs.get(query),
            "started_at_s": self._started_at_s.get(query),
        }

    def _ask(self, peer: Peer, message: wire.Message) -> None:
        fallback: Answer = Open(0, None)
        answer = self._guarded("a decision", lambda: self._answer(peer, message), fallback)
        peer.holding = isinstance(answer, Hold)
        self._send(peer, _as_message(answer))

    def _answer(self, peer: Peer, message: wire.Message) -> Answer:
        if peer.query is None or peer.query not in self.dispatcher.queries:
            return Open(0, None)
        now = Instant.now()
        rows, age_s = message.get("rows"), message.get("age_s")
        oldest_s = None if age_s is None else now.mono_s - float(age_s)
        report = GateReport(None if rows is None else int(rows), oldest_s, now.mono_s)
        return self.dispatcher.asked(peer.query, peer.index, report, now)

    def _took(self, peer: Peer, message: wire.Message) -> None:
        self._guarded("counting a batch", lambda: self._count(peer, message), None)

    def _count(self, peer: Peer, message: wire.Message) -> None:
        if peer.query in self.dispatcher.queries:
            arrivals = Arrivals.from_json(message["arrivals"])
            left = int(message.get("left", 0))
            self.dispatcher.took(peer.query, peer.index, int(message["rows"]), left, arrivals, Instant.now())

    def _bye(self, peer: Peer, message: wire.Message) -> None:
        peer.said_bye = True
        self._drop(peer)

    def _drop(self, peer: Peer) -> None:
        self._peers.discard(peer)
        self._selector.unregister(peer.connection)
        peer.connection.close()
        if peer.query is not None and not peer.said_bye:
            self._crashed.add(peer.query)

    def _send(self, peer: Peer, message: wire.Message) -> None:
        try:
            wire.send(peer.connection, message)
        except (OSError, ValueError):
            if peer in self._peers:
                self._drop(peer)

    # ---- inside helpers

    def _finished(self, progress: Progress) -> None:
        done = self._guarded("learning from a batch", lambda: self.dispatcher.finished(progress, Instant.now()), None)
        if done is not None:
            self._guarded("recording a batch", lambda: self._on_batch(*done), None)

    def _run_calls(self) -> None:
        os.read(self._wake_read, 4096)
        while True:
            try:
                function = self._calls.get_nowait()
            except queue.Empty:
                return
            self._guarded("a request", function, None)

    def _wake(self) -> None:
        try:
            os.write(self._wake_write, b"x")
        except OSError:  # closed: nobody is there to be woken
            log.debug("the coordinator has ended")

    def _close_all(self) -> None:
        """Closing the connections is what opens every gate."""
        self._stopping = True
        for peer in list(self._peers):
            peer.connection.close()
        self._peers.clear()
        self._listener.close()
        self._selector.close()
        os.close(self._wake_read)
        os.close(self._wake_write)


def _as_message(answer: Answer) -> wire.Message:
    match answer:
        case Open(_, max_rows):
            return {"open": True, "max_rows": max_rows}
        case Hold(seconds):
            return {"hold_s": seconds}
        case Idle(seconds):
            return {"idle_s": seconds}
        case Pass():
            return {"pass": True}


def _fulfil(future: Future[Any], function: Callable[[], Any]) -> None:
    try:
        future.set_result(function())
    except BaseException as error:
        future.set_exception(error)
