"""The gate of any DataFrame: an empty source placed first in a union.

Spark asks a query's sources for offsets in plan order. While this one blocks, the real source's offsets are not read;
when it lets go, everything that arrived meanwhile is in the batch. It controls time only, and has no rows of its own.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from headgate.errors import BadParameter
from headgate.sources.feed import Offset
from headgate.sources.gate_client import GateClient, Wait
from headgate.sources.options import gate_of

FORMAT = "headgate-gate"


class GateSource(DataSource):
    """``format("headgate-gate")``; made by ``Headgate.gate``, not by hand."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> StructType:
        raise BadParameter("format", FORMAT, "it has no data of its own", "use Headgate.gate(df)")

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 (Spark's name)
        return GateReader(gate_of(self.options))


class GateReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Blocks in `latestOffset` until the coordinator opens; its offset never moves, so it never makes a batch."""

    def __init__(self, gate: GateClient | None) -> None:
        self._gate = gate
        self._draining = False

    def initialOffset(self) -> Offset:  # noqa: N802
        return {"gate": 0}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadAllAvailable()

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802
        gate = self._gate
        if gate is None or self._draining:
            return start
        while isinstance(verdict := gate.ask(None, None, time.time()), Wait):
            gate.wait(verdict.seconds)
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
        return {**self.__dict__, "_gate": None}
