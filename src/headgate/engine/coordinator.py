"""One per driver: a single thread that answers gates and feeds the dispatcher; observe, decide, apply.

Everything that changes state runs in this thread, so nothing needs a lock: other threads hand in functions with
:meth:`Coordinator.call`.
"""

from __future__ import annotations

import logging
import queue
import selectors
import socket
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable
from concurrent.futures import Future, wait
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
from headgate.core.tasks import TaskTimes
from headgate.errors import HeadgateError

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
        self._wake_read, self._wake_write = socket.socketpair()
        self._selector = selectors.DefaultSelector()
        self._peers: set[Peer] = set()
        self._expected: dict[str, deque[str]] = defaultdict(deque)
        self._bound: dict[tuple[str, int], tuple[str, int]] = {}
        self._state_dirs: dict[str, str | None] = {}
        self._started_at_s: dict[str, float] = {}
        self._gate_counts: dict[str, int] = defaultdict(int)
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
        give_up_s = time.monotonic() + CALL_TIMEOUT_S
        while not wait([future], timeout=0.05).done:
            if not self.alive or time.monotonic() > give_up_s:
                raise HeadgateError("Headgate has been stopped, or its coordinator has failed; make a new Headgate")
        return future.result()

    def post(self, function: Callable[[], None]) -> None:
        """Run `function` in the coordinator's thread, some time soon; nothing happens once that has ended."""
        if self.alive:
            self._calls.put(function)
            self._wake()

    def expect(self, query: str, gates: list[str], state_dir: str | None = None) -> None:
        """The next processes that present these gates belong to `query`. Call it in the coordinator's thread."""
        self._drop_traces(query)
        self._gate_counts[query] = 0
        self._started_at_s[query] = Instant.now().wall_s
        self._state_dirs[query] = state_dir
        for gate in gates:
            self._expected[gate].append(query)

    def awaited(self) -> set[str]:
        """Queries whose gates have not presented themselves yet."""
        return {query for queries in self._expected.values() for query in queries}

    def unexpect(self, query: str) -> None:
        """The gates of `query` will not come any more."""
        for gate, queries in list(self._expected.items()):
            left = deque(other for other in queries if other != query)
            if left:
                self._expected[gate] = left
            else:
                del self._expected[gate]

    def forget(self, query: str) -> None:
        """The query has ended."""
        self.dispatcher.remove(query)
        self._drop_traces(query)

    def _drop_traces(self, query: str) -> None:
        """Forget the gates of an earlier run: another process may have their number, another query their name."""
        for kept in (self._state_dirs, self._started_at_s, self._gate_counts):
            kept.pop(query, None)
        self._bound = {key: value for key, value in self._bound.items() if value[0] != query}
        self.unexpect(query)
        for peer in self._peers:
            if peer.query == query:
                peer.query = None

    def worked(self, query: str, times: TaskTimes) -> None:
        """How long the tasks of a batch took (from the bookkeeper's thread)."""
        self.post(lambda: self.dispatcher.worked(query, times))

    def progress(self, progress: Progress) -> None:
        """Spark reports a batch (from the listener's thread)."""
        self.post(lambda: self._finished(progress))

    # ---- the loop

    def _run(self) -> None:
        try:
            while not self._stopping:
                ready = [key for key, _ in self._selector.select()]
                # Gates wait for their answer, other threads' requests (such as counting a batch) can wait for gates.
                for key in sorted(ready, key=lambda key: key.fileobj is self._wake_read):
                    self._guarded("an event", key.data, None)
                self._settle()
        except Exception:
            log.exception("the coordinator failed: all queries go on as plain Spark, without deadlines")
        finally:
            self._close_all()

    def _settle(self) -> None:
        """After events: if the set of running batches changed, divide the cores anew and wake whom it concerns."""
        for name in self.dispatcher.called():
            self._push_again(name)
        states = self.dispatcher.queries
        running = frozenset(f"{name}#{s.round.number}" for name, s in states.items() if s.round is not None)
        if running == self._ran:
            return
        ended = not self._ran <= running
        self._ran = running
        now_s = Instant.now().mono_s
        self._guarded("waking gates", lambda: self._wake_gates(now_s, ended), None)
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

    def _wake_gates(self, now_s: float, ended: bool) -> None:
        for query, enough in self.dispatcher.wakeable(now_s, ended=ended):
            if self._push_again(query) and enough:
                return

    def _push_again(self, query: str) -> bool:
        """Wake the gate that holds for `query`; False if there is none to wake."""
        holding = [peer for peer in self._peers if peer.query == query and peer.holding]
        for peer in holding:
            peer.holding = False
            self._send(peer, {"again": True})
        return bool(holding)

    # ---- gates

    def _accept(self) -> None:
        try:
            connection, nonce = wire.accept(self._listener)
        except OSError as error:  # a gate that has given up already
            log.debug("a connection was gone before it was accepted: %r", error)
            return
        peer = Peer(connection, nonce)
        self._peers.add(peer)
        self._selector.register(connection, selectors.EVENT_READ, lambda: self._hear(peer))

    def _hear(self, peer: Peer) -> None:
        try:
            message = wire.receive(peer.connection)
        except (OSError, EOFError, ValueError):
            self._drop(peer)
            return
        known = {"ask": self._ask, "took": self._took, "planned": self._planned, "bye": self._bye}
        handlers = known if peer.known else {"hello": self._hello}
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
        key = (gate, _whole(message.get("pid")))
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
            "deadline_s": self._deadline_s(query),
        }

    def _deadline_s(self, query: str) -> float | None:
        state = self.dispatcher.queries.get(query)
        return None if state is None else state.config.promise.deadline_s

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
        whole = message.get("whole") is True
        report = GateReport(None if rows is None else int(rows), oldest_s, now.mono_s, whole)
        return self.dispatcher.asked(peer.query, peer.index, report, now)

    def _took(self, peer: Peer, message: wire.Message) -> None:
        self._guarded("counting a batch", lambda: self._count(peer, message), None)

    def _count(self, peer: Peer, message: wire.Message) -> None:
        if peer.query in self.dispatcher.queries:
            arrivals = Arrivals.from_json(message["arrivals"])
            left = int(message.get("left", 0))
            skipped = int(message.get("skipped", 0))
            self.dispatcher.took(peer.query, peer.index, int(message["rows"]), left, arrivals, Instant.now(), skipped)

    def _planned(self, peer: Peer, message: wire.Message) -> None:
        self._guarded("noting a batch's tasks", lambda: self._note_shares(peer, message), None)

    def _note_shares(self, peer: Peer, message: wire.Message) -> None:
        if peer.query in self.dispatcher.queries:
            self.dispatcher.planned(peer.query, peer.index, tuple(str(share) for share in message["shares"]))

    def _bye(self, peer: Peer, message: wire.Message) -> None:
        self._drop(peer)

    def _drop(self, peer: Peer) -> None:
        if peer.holding and peer.query in self.dispatcher.queries:  # its turn must not be waited for
            self.dispatcher.queries[peer.query].release(Instant.now().mono_s)
        self._peers.discard(peer)
        self._selector.unregister(peer.connection)
        peer.connection.close()

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
        self._wake_read.recv(4096)
        while True:
            try:
                function = self._calls.get_nowait()
            except queue.Empty:
                return
            self._guarded("a request", function, None)

    def _wake(self) -> None:
        try:
            self._wake_write.send(b"x", socket.MSG_DONTWAIT)
        except BlockingIOError:  # full of wake-ups already
            return
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
        self._wake_read.close()
        self._wake_write.close()


def _as_message(answer: Answer) -> wire.Message:
    match answer:
        case Open(_, max_rows, row_work_s):
            return {"open": True, "max_rows": max_rows, "row_work_s": row_work_s}
        case Hold(seconds, rate_rows_s):
            return {"hold_s": seconds, "rate_rows_s": rate_rows_s}
        case Idle(seconds):
            return {"idle_s": seconds}
        case Pass():
            return {"pass": True}


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 0


def _fulfil(future: Future[Any], function: Callable[[], Any]) -> None:
    try:
        future.set_result(function())
    except BaseException as error:
        future.set_exception(error)
