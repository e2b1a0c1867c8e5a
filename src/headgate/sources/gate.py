"""The gate of any DataFrame: an empty source placed first in a union.

Spark asks a query's sources for offsets in plan order. While this one blocks, the real source's offsets are not read;
when it lets go, everything that arrived meanwhile is in the batch. It controls time only, and has no rows of its own.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from headgate.errors import BadParameter
from headgate.sources.feed import Offset, Pending
from headgate.sources.gate_client import GateClient, Opened, Wait
from headgate.sources.options import gate_of
from headgate.sources.probe import Probe, probe_of
from headgate.sources.reader import LOOKS, MIN_LOOK_S, SURPRISE

FORMAT = "headgate-gate"


class GateSource(DataSource):
    """``format("headgate-gate")``; made by ``Headgate.gate``, not by hand."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> StructType:
        raise BadParameter("format", FORMAT, "it has no data of its own", "use Headgate.gate(df)")

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 (Spark's name)
        return GateReader(gate_of(self.options), dict(self.options))


class GateReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Blocks in `latestOffset` until the coordinator opens; its offset never moves, so it never makes a batch."""

    def __init__(self, gate: GateClient | None, options: Mapping[str, str]) -> None:
        self._gate = gate
        self._options = options
        self._watch: Watch | None = None
        self._draining = False

    def initialOffset(self) -> Offset:  # noqa: N802
        return {"gate": 0}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadAllAvailable()

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802
        gate = self._gate
        if gate is None or self._draining:
            return start
        if self._watch is None:
            self._watch = Watch(self._options)
        while True:
            now_s = time.time()
            pending = self._watch.pending(now_s)
            if pending is None:
                verdict = gate.ask(None, None, now_s)
            else:
                verdict = gate.ask(pending.rows, pending.oldest_at_s, now_s, whole=True)
            if isinstance(verdict, Wait):
                self._watch.hold(gate, verdict, 0 if pending is None else pending.rows)
            elif isinstance(verdict, Opened):
                self._watch.opened(gate)
                return start
            elif pending is None or not pending.empty or not self._watch.rest(gate, verdict.seconds):
                self._watch.passed()
                return start

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        return []

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        return iter(())

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._draining = True
        if self._gate is not None:
            self._gate.greet()  # so that it is known whose gate this is, though it will never ask

    def stop(self) -> None:
        if self._gate is not None:
            self._gate.close()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_gate": None, "_watch": None, "_options": {}}


class Watch:
    """What is known of the source behind a gate: by a probe, if there is one for it and as long as it works."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._probe: Probe | None = None
        with self._failing_open():
            self._probe = probe_of(options)

    def pending(self, now_s: float) -> Pending | None:
        found = None
        with self._failing_open():
            found = None if self._probe is None else self._probe.pending(now_s)
        return found

    def opened(self, gate: GateClient) -> None:
        with self._failing_open():
            if self._probe is not None and (taken := self._probe.opened(time.time())) is not None:
                gate.took(taken, 0)

    def passed(self) -> None:
        """Spark is given its turn, and reads what may have come in this very moment: it waits no longer."""
        with self._failing_open():
            if self._probe is not None:
                self._probe.opened(time.time())

    def hold(self, gate: GateClient, verdict: Wait, rows: int) -> None:
        """Wait as told; with a probe, look now and then: a burst makes the answer outdated."""
        begun_s = time.monotonic()
        while (left_s := verdict.seconds - (time.monotonic() - begun_s)) > 0:
            look_s = max(MIN_LOOK_S, verdict.seconds / LOOKS) if self._probe is not None else left_s
            if gate.wait(min(left_s, look_s)):
                return
            pending = self.pending(time.time())
            forecast = rows + verdict.rate_rows_s * (time.monotonic() - begun_s)
            if pending is not None and pending.rows > SURPRISE * forecast:
                return

    def rest(self, gate: GateClient, seconds: float) -> bool:
        """Wait for an arrival, and tell whether there was one."""
        give_up_s = time.monotonic() + seconds
        while (left_s := give_up_s - time.monotonic()) > 0:
            gate.wait(min(left_s, MIN_LOOK_S))
            pending = self.pending(time.time())
            if pending is None or not pending.empty:
                return True
        return False

    @contextmanager
    def _failing_open(self) -> Iterator[None]:
        """Without its probe a gate knows less; without its gate a query would stand still."""
        try:
            yield
        except Exception as error:
            self._probe = None
            print(f"headgate: WARNING: what waits is only estimated from now on: {error}", file=sys.stderr, flush=True)
