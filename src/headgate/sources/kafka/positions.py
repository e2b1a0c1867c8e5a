"""Positions in topics and what lies between two of them. Pure.

An offset of this source is what Spark's own Kafka source writes, ``{"topic": {"0": 17}}``: the next record of each
partition. A checkpoint of either source can therefore be read by people, and compared, in the same way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from headgate.errors import BadParameter, StateError
from headgate.sources.feed import Offset

EARLIEST, LATEST = -2, -1
"""As in Spark's JSON of offsets: the first record that is there, and the next that will come."""


class Partition(NamedTuple):
    """One partition of a topic."""

    topic: str
    number: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.number}"


Positions = dict[Partition, int]
"""The next record of each partition."""


class Slice(NamedTuple):
    """Records `first` up to, but not including, `end` of a partition."""

    topic: str
    partition: int
    first: int
    end: int

    @property
    def where(self) -> Partition:
        return Partition(self.topic, self.partition)

    def __str__(self) -> str:
        return f"{self.where}[{self.first}:{self.end}]"


def to_offset(positions: Mapping[Partition, int]) -> Offset:
    """As Spark's Kafka source writes it, in the order of the names."""
    offset: dict[str, dict[str, int]] = {}
    for partition in sorted(positions):
        offset.setdefault(partition.topic, {})[str(partition.number)] = positions[partition]
    return offset


def from_offset(offset: Offset) -> Positions:
    """The inverse of `to_offset`; anything else is a StateError, because it comes from a checkpoint."""
    try:
        return _positions(offset)
    except ValueError as error:
        raise StateError(
            f"{offset!r:.200} is no position in Kafka topics ({error}); start the query with a new checkpoint"
        ) from error


def parse_positions(parameter: str, value: object, *, least: int) -> Positions:
    """Positions that a user wrote as JSON, none below `least`."""
    try:
        positions = _positions(value)
        if not positions:
            raise ValueError("it names no partition")
        if any(position < least for position in positions.values()):
            raise ValueError(f"{min(positions.values())} is below {least}")
    except ValueError as error:
        remedy = 'write for example {"topic": {"0": 23, "1": -2}}'
        raise BadParameter(parameter, value, str(error), remedy) from error
    return positions


def _positions(value: object) -> Positions:
    if not isinstance(value, Mapping):
        raise ValueError("it must be an object of topics")
    positions: Positions = {}
    for topic, partitions in value.items():
        if not isinstance(partitions, Mapping):
            raise ValueError(f"topic {topic!r} must have an object of partitions")
        for number, position in partitions.items():
            if not str(number).isdecimal() or type(position) is not int:
                raise ValueError(f"partition {number!r} of topic {topic!r} must have a whole number")
            positions[Partition(str(topic), int(number))] = position
    return positions


def slices_between(start: Mapping[Partition, int], end: Mapping[Partition, int]) -> list[Slice]:
    """What a batch from `start` to `end` holds, by partition: the same two positions always give the same slices.

    A partition that `start` does not know is new and begins at 0. One that ends before it began was deleted and made
    again: what it holds now is new from 0 on. One that `end` does not know is gone.
    """
    slices = [Slice(*partition, begin(start.get(partition), last), last) for partition, last in sorted(end.items())]
    return [each for each in slices if each.end > each.first]


def begin(first: int | None, last: int) -> int:
    """Where to read from to get to `last`."""
    return 0 if first is None or first > last else first


def rows_in(slices: Iterable[Slice]) -> int:
    """How many records, if there are no gaps; compaction and aborted transactions leave some."""
    return sum(each.end - each.first for each in slices)
