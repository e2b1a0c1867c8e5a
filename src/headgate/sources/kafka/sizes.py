"""How many bytes a record has, by partition: what `backlogUnit` bytes goes by. Kafka counts records only.

Learnt from a few of the records that wait, now and then: every record is read by a task somewhere in the cluster, which
has no way to tell this process.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from statistics import fmean
from typing import TYPE_CHECKING, Any

from headgate.sources.kafka.config import KafkaConfig
from headgate.sources.kafka.positions import Partition, Positions
from headgate.sources.kafka.reader import POLL_S, connect, consumer_settings

if TYPE_CHECKING:
    from confluent_kafka import Consumer

RESAMPLE_S = 30.0
"""A partition's records are looked at so often, to follow those that grow or shrink."""

MEMORY = 0.5
"""Weight of what was known before when a sample is added: about the last two count."""

SAMPLE_ROWS = 50

SAMPLE_BYTES = 64 * 1024
"""Asked of the broker for each partition; a larger record comes whole."""

SAMPLE_S = 0.5
"""The longest that a batch waits for samples. Those of ten partitions, from a broker on the same two busy cores, took a
tenth of a second."""

Sample = Callable[[Positions], dict[Partition, list[int]]]
"""Positions to the sizes of some records from there on; partitions may be left out."""


class RecordSizes:
    """Mean bytes of a partition's records."""

    def __init__(self, sample: Sample) -> None:
        self._sample = sample
        self._sampled_at_s: dict[Partition, float] = {}
        self._means: dict[Partition, float] = {}

    def refresh(self, waiting: Positions, now_s: float) -> None:
        """Look at the first records that wait, in those partitions where that was not done for a while."""
        due = {each: at for each, at in waiting.items() if not self._is_fresh(each, now_s)}
        if not due:
            return
        self._sampled_at_s |= dict.fromkeys(due, now_s)
        for partition, sizes in self._sample(due).items():
            if sizes:
                found = fmean(sizes)
                before = self._means.get(partition, found)
                self._means[partition] = MEMORY * before + (1 - MEMORY) * found

    def weights(self, partitions: Iterable[Partition]) -> list[float]:
        """Bytes of a record of each, at least 1; of one that is not known as many as the others have on average."""
        usual = fmean(self._means.values()) if self._means else 1.0
        return [max(1.0, self._means.get(partition, usual)) for partition in partitions]

    def _is_fresh(self, partition: Partition, now_s: float) -> bool:
        return 0 <= now_s - self._sampled_at_s.get(partition, -math.inf) < RESAMPLE_S


class Sampler:
    """Reads a few records in the planning process, with a consumer of its own that fetches little.

    What cannot be read is left out: sizes help to choose, and a query must not end for want of them.
    """

    def __init__(self, config: KafkaConfig) -> None:
        self._settings = consumer_settings(config) | {
            "max.partition.fetch.bytes": SAMPLE_BYTES,
            "queued.min.messages": SAMPLE_ROWS,
        }
        self._consumer: Consumer | None = None

    def __call__(self, positions: Positions) -> dict[Partition, list[int]]:
        from confluent_kafka import KafkaException

        try:
            if self._consumer is None:
                self._consumer, _ = connect(self._settings)
            return self._read(self._consumer, positions)
        except KafkaException:
            self._consumer = None
            return {}

    def _read(self, consumer: Consumer, positions: Positions) -> dict[Partition, list[int]]:
        from confluent_kafka import TopicPartition

        found: dict[Partition, list[int]] = {each: [] for each in positions}
        wanted = set(positions)
        give_up_s = time.monotonic() + SAMPLE_S
        consumer.assign([TopicPartition(*each, at) for each, at in positions.items()])
        while wanted and time.monotonic() < give_up_s:
            done = set()
            for message in consumer.consume(SAMPLE_ROWS, POLL_S):
                partition = Partition(message.topic(), message.partition())
                if message.error() is not None or len(found[partition]) == SAMPLE_ROWS:  # an error may be its end
                    done.add(partition)
                else:
                    found[partition].append(_size(message))
            if done & wanted:  # what else was fetched of them, whole batches of a producer, is thrown away unread
                consumer.incremental_unassign([TopicPartition(*each) for each in done & wanted])
                wanted -= done
        consumer.unassign()
        return found


def _size(message: Any) -> int:
    return len(message.key() or b"") + len(message.value() or b"")
