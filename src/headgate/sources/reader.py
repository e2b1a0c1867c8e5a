"""The gate inside Spark: a stream reader whose `latestOffset` asks the coordinator before a batch may start.

Spark calls these methods in one planning process per source and query; only `read` travels to executors.
Readers are pickled for that, so they hold nothing but configuration and open everything else on first use.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from headgate.sources.feed import Feed, Offset, Range, RangeReader, Taken
from headgate.sources.gate_client import GateClient, Nothing, Opened, Verdict, Wait

if TYPE_CHECKING:
    import pyarrow as pa


LOOKS, MIN_LOOK_S = 8, 0.05
"""A held source is looked at this often during a hold, but not more often than so."""

SURPRISE = 1.25
"""More than this times the forecast is a burst: ask again."""

_STATE_PATIENCE_S = 10.0
"""A source with a log of its own cannot begin without knowing where that is."""

_NAMED_PARTS = 3
"""Of a task's parts, so many are named: a batch may have thousands of files."""

_MIN_REST_S = 0.005
"""A source that promises an arrival right now and has none must not make a busy loop."""


class GatedReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A native source behind a gate: the coordinator decides when a batch starts and how many rows it may hold."""

    needs_state = False
    """Whether the source keeps a log beside the query's checkpoint."""

    def __init__(self, gate: GateClient | None, read_range: RangeReader, max_rows: int | None, tasks: int) -> None:
        self._gate = gate
        self._read_range = read_range
        self._max_rows = max_rows
        self._tasks = tasks
        self._feed: Feed | None = None
        self._initial: Offset | None = None
        self._drain_until_s: float | None = None
        self._told_idle = False
        self._pause_s = 0.0
        self._row_work_s: float | None = None

    def make_feed(self, state_dir: str | None) -> Feed:
        """Open the source; runs once, in the planning process."""
        raise NotImplementedError

    def parts_of(self, share: Range) -> list[str]:
        """The parts of the source that a task reads, by their names; for people who look for a straggler."""
        raise NotImplementedError

    def initialOffset(self) -> Offset:  # noqa: N802 (Spark's name)
        # Spark asks twice before the first batch and expects the same answer.
        if self._initial is None:
            feed = self._opened_feed()
            started_at_s = None if self._gate is None else self._gate.started_at_s
            self._initial = feed.initial(time.time() if started_at_s is None else started_at_s)
        return self._initial

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadAllAvailable() if self._max_rows is None else ReadMaxRows(self._max_rows)

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802
        feed = self._opened_feed()
        if self._drain_until_s is not None:
            return self._drain(feed, start, self._drain_until_s)
        if self._told_idle and not self._arrived(feed, start):
            return start
        while True:
            now_s = time.time()
            pending = feed.pending(start, now_s)
            verdict = self._ask(pending.rows, pending.oldest_at_s, now_s)
            if isinstance(verdict, Wait):
                self._hold(feed, start, pending.rows, verdict)
                continue
            self._told_idle = pending.empty and isinstance(verdict, Nothing)
            self._pause_s = verdict.seconds if isinstance(verdict, Nothing) else 1.0
            if not isinstance(verdict, Opened) or pending.empty:
                return start  # Spark may use the turn for a batch without data, if a watermark wants one
            self._row_work_s = verdict.row_work_s
            return self._take(feed, start, _lesser(verdict.max_rows, self._max_rows)).end

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        shares = self._opened_feed().ranges(start, end, self._tasks, self._row_work_s)
        if self._gate is not None:
            self._gate.planned([_in_short(self.parts_of(share)) for share in shares])
        return [InputPartition(share) for share in shares]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._read_range(partition.value)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._drain_until_s = time.time()
        self._opened_feed().freeze(self._drain_until_s)

    def commit(self, end: Offset) -> None:
        self._opened_feed().forget(end)

    def stop(self) -> None:
        if self._gate is not None:
            self._gate.close()

    def _opened_feed(self) -> Feed:
        if self._feed is None:
            if self._gate is not None:
                self._gate.greet(patience_s=_STATE_PATIENCE_S if self.needs_state else 0.0)
            self._feed = self.make_feed(None if self._gate is None else self._gate.state_dir)
        return self._feed

    def _ask(self, rows: int, oldest_at_s: float | None, now_s: float) -> Verdict:
        return Opened() if self._gate is None else self._gate.ask(rows, oldest_at_s, now_s)

    def _wait(self, seconds: float) -> bool:
        """Sleep, and tell whether the coordinator has woken us."""
        if self._gate is not None:
            return self._gate.wait(seconds)
        time.sleep(seconds)
        return False

    def _take(self, feed: Feed, start: Offset, max_rows: int | None) -> Taken:
        now_s = time.time()
        taken = feed.take(start, max_rows, now_s)
        if self._gate is not None:
            left = feed.pending(taken.end, now_s).rows if max_rows is not None else 0
            self._gate.took(taken, left)
        return taken

    def _hold(self, feed: Feed, start: Offset, rows: int, verdict: Wait) -> None:
        """Wait as told, but look at the source now and then: a burst makes the answer outdated."""
        begun_s = time.monotonic()
        while (left_s := verdict.seconds - (time.monotonic() - begun_s)) > 0:
            if self._wait(min(left_s, max(MIN_LOOK_S, verdict.seconds / LOOKS))):
                return
            forecast = rows + verdict.rate_rows_s * (time.monotonic() - begun_s)
            if feed.pending(start, time.time()).rows > SURPRISE * forecast:
                return

    def _arrived(self, feed: Feed, start: Offset) -> bool:
        """Let an idle source rest without troubling anybody, up to the pause that the coordinator named."""
        give_up_s = time.time() + self._pause_s
        while feed.pending(start, now_s := time.time()).empty:
            if now_s >= give_up_s:
                return False
            self._wait(min(give_up_s, max(feed.next_arrival_s(start, now_s), now_s + _MIN_REST_S)) - now_s)
        return True

    def _drain(self, feed: Feed, start: Offset, until_s: float) -> Offset:
        """``trigger(availableNow=True)``: what was there at its beginning, ungated, then nothing more."""
        if feed.pending(start, until_s).empty:
            return start
        return feed.take(start, self._max_rows, until_s).end

    def __getstate__(self) -> dict[str, Any]:
        """What travels to executors: the way to read a range, and nothing of the gate."""
        return {**self.__dict__, "_feed": None, "_gate": None}


def _lesser(first: int | None, second: int | None) -> int | None:
    limits = [limit for limit in (first, second) if limit is not None]
    return min(limits, default=None)


def _in_short(parts: list[str]) -> str:
    named = ", ".join(parts[:_NAMED_PARTS])
    return named if len(parts) <= _NAMED_PARTS else f"{named} and {len(parts) - _NAMED_PARTS} more"
