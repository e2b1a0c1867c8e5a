"""A Kafka cluster in memory, as far as the feed asks: partitions of timestamps, trimmed, deleted, made anew."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

from headgate.sources.kafka.positions import Partition, Positions


class MemoryCluster:
    """Stamps of records by partition; must rise, as a broker's append times do."""

    def __init__(self, **topics: int) -> None:
        self.stamps: dict[Partition, list[float]] = {
            Partition(topic, number): [] for topic, count in topics.items() for number in range(count)
        }
        self.first: dict[Partition, int] = {}
        self.stable: dict[Partition, int] = {}
        """Where an open transaction begins, in partitions that have one."""
        self.sizes: dict[Partition, int] = {}
        self.name = "a cluster in memory"
        self.requests = 0

    def append(self, partition: Partition, *stamps_s: float) -> None:
        self.stamps[partition].extend(stamps_s)

    def trim(self, partition: Partition, first: int) -> None:
        """Retention: what lies before `first` is gone."""
        self.first[partition] = first

    def identity(self) -> str:
        return self.name

    def partitions(self) -> set[Partition]:
        return set(self.stamps)

    def begins(self, partitions: Iterable[Partition]) -> Positions:
        return {each: self.first.get(each, 0) for each in partitions if each in self.stamps}

    def ends(self, partitions: Iterable[Partition], *, uncommitted: bool = False) -> Positions:
        self.requests += 1
        there = {each: len(self.stamps[each]) for each in partitions if each in self.stamps}
        return there if uncommitted else {each: self.stable.get(each, end) for each, end in there.items()}

    def begins_at(self, partitions: Iterable[Partition], times_s: Iterable[float]) -> list[Positions]:
        wanted = [each for each in partitions if each in self.stamps]
        return [self._begins_at(wanted, at_s) for at_s in times_s]

    def sample(self, positions: Positions) -> dict[Partition, list[int]]:
        """The first records from there on; without a size there are none to be had."""
        self.requests += 1
        return {each: [self.sizes[each]] * 3 for each in positions if each in self.sizes}

    def _begins_at(self, partitions: list[Partition], at_s: float) -> Positions:
        self.requests += 1
        found = {each: bisect_left(self.stamps[each], at_s) for each in partitions}
        return {each: offset for each, offset in found.items() if offset < len(self.stamps[each])}
