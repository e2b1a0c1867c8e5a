"""Read a task's slices of partitions in an executor, as Arrow.

Consumers are kept between batches: Spark reuses its Python workers, and connecting anew would cost each batch tens of
milliseconds. librdkafka fetches in a thread of its own while this one makes columns of what has come.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headgate.sources.feed import Range
from headgate.sources.kafka.broker import (
    REFUSED_S,
    DataLost,
    KafkaTrouble,
    Refusal,
    checked_settings,
    is_hopeless,
    is_missing,
)
from headgate.sources.kafka.config import KafkaConfig
from headgate.sources.kafka.positions import Partition, Slice

if TYPE_CHECKING:
    import pyarrow as pa
    from confluent_kafka import Consumer, Message

CHUNK_ROWS = 4_000
"""Records turned into one Arrow batch at most; chunks of 20,000 cost more per record."""

ALONE_ROWS = 50_000
"""A slice of so many records is read before the others of its share."""

POLL_S = 0.01
"""How long to wait for a full chunk: where offsets have gaps there is none at the end of a slice."""

RETRY_S = 0.1

MISSING_S = 5.0
"""A topic that the brokers do not know for so long was deleted: they forget for a moment when they restart."""

_IDLE: dict[tuple[tuple[str, Any], ...], tuple[Consumer, Refusal]] = {}
"""Consumers without work, by their settings; in a Python worker of Spark's there is one task at a time."""


@dataclass(frozen=True)
class KafkaRangeReader:
    """Reads the slices of a share, exactly."""

    config: KafkaConfig

    def __call__(self, share: Range) -> Iterator[pa.RecordBatch]:
        settings = consumer_settings(self.config)
        key = tuple(sorted(settings.items()))
        consumer, refusal = rested(*_IDLE.pop(key)) if key in _IDLE else connect(settings)
        # Given back only after a clean end: what an interrupted one holds is unknown.
        slices = [Slice(*each) for each in share["slices"]]
        yield from SliceReading(consumer, refusal, self.config, slices).batches()
        consumer.unassign()
        _IDLE[key] = consumer, refusal


def connect(settings: dict[str, Any]) -> tuple[Consumer, Refusal]:
    from confluent_kafka import Consumer

    refusal = Refusal()
    with checked_settings():
        return Consumer(settings | {"error_cb": refusal.note}), refusal


def rested(consumer: Consumer, refusal: Refusal) -> tuple[Consumer, Refusal]:
    """An idle consumer without what it was told meanwhile: that says nothing about what it is to do now."""
    consumer.poll(0)
    refusal.forget()
    return consumer, refusal


def consumer_settings(config: KafkaConfig) -> dict[str, Any]:
    """What reading exact ranges needs; the user's settings may override how fetching is tuned, not what is promised."""
    tuned = {
        "client.id": "headgate",
        "log_level": 2,
        "group.id": "headgate",  # demanded by the library; nothing is ever committed there
        "fetch.wait.max.ms": 5,
        "fetch.queue.backoff.ms": 5,
        "queued.min.messages": 50_000,
        "queued.max.messages.kbytes": 8_192,
        "check.crcs": True,  # as the Java client does
    }
    promised = {"enable.auto.commit": False, "auto.offset.reset": "error", "enable.partition.eof": True}
    return tuned | dict(config.settings) | promised


class SliceReading:
    """One share being read."""

    def __init__(self, consumer: Consumer, refusal: Refusal, config: KafkaConfig, slices: Sequence[Slice]) -> None:
        self._consumer = consumer
        self._refusal = refusal
        self._config = config
        self._next = {Partition(each.topic, each.partition): each.first for each in slices}
        self._end = {Partition(each.topic, each.partition): each.end for each in slices}
        self._assigned: list[Partition] = []
        self._progress_at_s = time.monotonic()
        self._trouble = ""

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All records between the slices' ends, by partition in their order."""
        self._assign()
        while self._end:
            messages = self._consumer.consume(min(CHUNK_ROWS, self._left()), POLL_S)
            refused = self._refusal.error if not messages else None
            if refused is not None and self._stalled_s > min(REFUSED_S, self._config.patience_s):
                raise KafkaTrouble(self._told(refused.str(), "see the settings kafka.*"))
            if self._stalled_s > self._config.patience_s:
                raise KafkaTrouble(
                    self._told(f"no record came{self._trouble}", "check the brokers, or allow more time")
                )
            yield from self._sorted_out(messages)

    @property
    def _stalled_s(self) -> float:
        return time.monotonic() - self._progress_at_s

    def _left(self) -> int:
        return sum(self._end[each] - self._next[each] for each in self._assigned)

    def _assign(self) -> None:
        """Small slices together, to wait for one answer only; a large one alone, so that nothing has to be sorted."""
        from confluent_kafka import TopicPartition

        large = (each for each, end in self._end.items() if end - self._next[each] >= ALONE_ROWS)
        first = next(large, None)
        self._assigned = list(self._end) if first is None else [first]
        self._consumer.assign([TopicPartition(*each, self._next[each]) for each in self._assigned])

    def _sorted_out(self, messages: list[Message]) -> Iterator[pa.RecordBatch]:
        """Records first: what else came, such as the end of a partition, came after them."""
        from headgate.sources.kafka.columns import record_batch

        others = []
        if messages and any(map(type(messages[0]).error, messages)):
            others = [message for message in messages if message.error() is not None]
            messages = [message for message in messages if message.error() is None]
        for partition, found in self._by_partition(messages).items():
            if wanted := self._wanted(partition, found):
                yield record_batch(partition, wanted, with_headers=self._config.include_headers)
            if partition in self._end:
                self._advance(partition, found[-1].offset() + 1)
        for message in others:
            self._react(message, message.error())

    def _by_partition(self, messages: list[Message]) -> dict[Partition, list[Message]]:
        if len(self._assigned) == 1 and messages:
            return {self._assigned[0]: messages}
        found: dict[tuple[str, int], list[Message]] = {}
        for message in messages:
            found.setdefault((message.topic(), message.partition()), []).append(message)
        return {Partition(*where): those for where, those in found.items()}

    def _wanted(self, partition: Partition, found: list[Message]) -> list[Message]:
        """Without what lies beyond the slice; offsets rise."""
        end = self._end.get(partition, 0)
        if found[-1].offset() < end:
            return found
        return [message for message in found if message.offset() < end]

    def _advance(self, partition: Partition, position: int) -> None:
        self._next[partition] = position
        self._progress_at_s = time.monotonic()
        if position >= self._end[partition]:
            self._finish(partition)

    def _finish(self, partition: Partition) -> None:
        from confluent_kafka import TopicPartition

        del self._end[partition]
        self._assigned.remove(partition)
        if self._assigned:
            self._consumer.incremental_unassign([TopicPartition(*partition)])
        elif self._end:
            self._assign()

    def _react(self, message: Message, error: Any) -> None:
        """The end of a partition, a hole in it, or trouble. What may mend itself is waited for."""
        from confluent_kafka import KafkaError

        partition = Partition(message.topic(), message.partition())
        if error.code() == KafkaError._PARTITION_EOF:
            self._ended(partition, message.offset())
        elif is_hopeless(error):
            raise KafkaTrouble(self._told(error.str(), "see the settings kafka.*"))
        elif partition in self._end and error.code() == KafkaError._AUTO_OFFSET_RESET:
            first = self._first_there(partition)
            self._lost(partition, first if first > self._next[partition] else self._end[partition])
        elif partition in self._end and is_missing(error) and self._stalled_s > MISSING_S:
            self._lost(partition, self._end[partition])
        else:
            self._trouble = f" ({error.str()})"
            if partition in self._end and is_missing(error):
                time.sleep(RETRY_S)
                self._assign()

    def _ended(self, partition: Partition, offset: int) -> None:
        """The end of a partition: of gaps at the slice's end (aborted or compacted records), or of too short a log."""
        if partition not in self._end:
            return
        if offset >= self._end[partition]:
            self._finish(partition)
        elif self._stalled_s > MISSING_S:
            self._lost(partition, self._end[partition])
        else:  # a new leader may know less for a moment
            time.sleep(RETRY_S)
            self._assign()

    def _lost(self, partition: Partition, first: int) -> None:
        """The records up to `first` are gone."""
        missing = min(first, self._end[partition]) - self._next[partition]
        if self._config.fail_on_data_loss:
            raise DataLost(
                self._told(
                    f"{partition} has no record {self._next[partition]} any more",
                    'to go on with what is there, start the query with .option("failOnDataLoss", "false")',
                )
            )
        print(f"headgate: WARNING: {partition}: {missing} records are gone and were skipped", file=sys.stderr)
        self._advance(partition, self._next[partition] + missing)
        if self._end:
            self._assign()

    def _first_there(self, partition: Partition) -> int:
        from confluent_kafka import TopicPartition

        low, _ = self._consumer.get_watermark_offsets(TopicPartition(*partition), timeout=self._config.patience_s)
        return int(low)

    def _told(self, problem: str, remedy: str) -> str:
        where = ", ".join(f"{each} from {self._next[each]} to {end}" for each, end in list(self._end.items())[:3])
        return f"{self._config}: reading {where}: {problem}; {remedy}"
