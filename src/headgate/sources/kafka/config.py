"""What a user may say about Kafka topics, checked once; names and meanings as in Spark's own Kafka source."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from headgate.core.compose import COMPOSITIONS
from headgate.errors import BadParameter
from headgate.sources.kafka.positions import EARLIEST, LATEST, Partition, Positions, parse_positions
from headgate.sources.kafka.settings import Settings, shown, translate
from headgate.sources.options import choice, flag, positive_int, refuse

ArrivalStamp = Literal["timestamp", "seen"]
Stragglers = Literal["error", "latest"]
BacklogUnit = Literal["records", "bytes"]

PATIENCE_S = 120.0
"""How long to wait for a broker, as Spark's source does by default."""

LBF, OLDEST = "lbf", "oldest"

_REFUSED = {
    "minOffsetsPerTrigger": "the deadline decides how long a batch waits",
    "maxTriggerDelay": "the deadline decides how long a batch waits",
    "maxRecordsPerPartition": "large batches are cut into tasks anyway; minPartitions asks for more of them",
    "fetchOffset.numRetries": "brokers are asked again for as long as kafkaConsumer.pollTimeoutMs says",
    "fetchOffset.retryIntervalMs": "brokers are asked again for as long as kafkaConsumer.pollTimeoutMs says",
    "endingOffsets": "a stream has no end: use trigger(availableNow=True)",
    "endingTimestamp": "a stream has no end: use trigger(availableNow=True)",
    "endingOffsetsByTimestamp": "a stream has no end: use trigger(availableNow=True)",
}


@dataclass(frozen=True, slots=True)
class Subscription:
    """Which partitions: of topics by name, of topics by a pattern of their whole name, or just these."""

    topics: tuple[str, ...] = ()
    pattern: str | None = None
    partitions: tuple[Partition, ...] = ()
    with_internal: bool = False
    """Whether a pattern also means Kafka's own topics."""

    def __str__(self) -> str:
        return self.pattern or ", ".join(self.topics) or ", ".join(map(str, self.partitions))


@dataclass(frozen=True, slots=True)
class Beginning:
    """Where a query without a checkpoint begins. Times are milliseconds since the epoch, as Kafka has them."""

    everywhere: int = LATEST
    positions: Positions = field(default_factory=dict)
    timestamp_ms: int | None = None
    timestamps_ms: Positions = field(default_factory=dict)
    beyond_the_end: Stragglers = "error"
    """What to do where no record is as young as the timestamp."""

    @property
    def moves(self) -> bool:
        """Whether it would be another place if it were asked for later."""
        if self.timestamp_ms is not None or self.timestamps_ms:
            return True
        return LATEST in (self.positions.values() if self.positions else [self.everywhere])


@dataclass(frozen=True, slots=True)
class KafkaConfig:
    """The options of a Kafka source."""

    subscription: Subscription
    beginning: Beginning
    settings: Settings = field(repr=False)
    """For librdkafka; may hold credentials, so it never shows itself."""
    fail_on_data_loss: bool = True
    max_offsets_per_trigger: int | None = None
    min_partitions: int | None = None
    include_headers: bool = False
    patience_s: float = PATIENCE_S
    arrival: ArrivalStamp = "timestamp"
    compose: str = LBF
    backlog_unit: BacklogUnit = "records"
    """What `lbf` counts, and what tasks have equally much of."""

    def __str__(self) -> str:
        return f"Kafka topics {self.subscription} of {shown(self.settings)['bootstrap.servers']}"

    @property
    def read_committed(self) -> bool:
        """librdkafka's default, as the Java client's is not: Spark reads uncommitted records unless told otherwise."""
        return self.settings["isolation.level"] == "read_committed"

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> KafkaConfig:
        """Read Spark's options, whose names have no case."""
        given = {key.lower(): value for key, value in options.items()}
        refuse(given, _REFUSED)
        settings = translate({key[6:]: value for key, value in given.items() if key.startswith("kafka.")})
        settings.setdefault("isolation.level", "read_uncommitted")
        return cls(
            subscription=_subscription(given),
            beginning=_beginning(given),
            settings=settings,
            fail_on_data_loss=flag(given, "failOnDataLoss", True),
            max_offsets_per_trigger=positive_int(given, "maxOffsetsPerTrigger"),
            min_partitions=positive_int(given, "minPartitions"),
            include_headers=flag(given, "includeHeaders", False),
            patience_s=(positive_int(given, "kafkaConsumer.pollTimeoutMs") or PATIENCE_S * 1000) / 1000,
            arrival="seen" if choice(given, "arrival", ("timestamp", "seen")) == "seen" else "timestamp",
            compose=choice(given, "compose", (*COMPOSITIONS, OLDEST)),
            backlog_unit="bytes" if choice(given, "backlogUnit", ("records", "bytes")) == "bytes" else "records",
        )


def _subscription(given: Mapping[str, str]) -> Subscription:
    names = [name for name in ("subscribe", "subscribePattern", "assign") if name.lower() in given]
    if len(names) != 1:
        raise BadParameter(
            "subscribe", " and ".join(names) or None, "say in exactly one way which topics are read",
            'write .option("subscribe", "topic1,topic2"), or subscribePattern, or assign',
        )  # fmt: skip
    name, text = names[0], given[names[0].lower()].strip()
    if name == "subscribePattern":
        without_internal = flag(given, "kafka.exclude.internal.topics", True)
        found = Subscription(pattern=_pattern(text), with_internal=not without_internal)
    elif name == "assign":
        found = Subscription(partitions=_partitions(text))
    else:
        found = Subscription(topics=tuple(topic.strip() for topic in text.split(",") if topic.strip()))
    if not str(found):
        raise BadParameter(name, text, "no topic is named", 'write for example "orders,payments"')
    return found


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise BadParameter("subscribePattern", text, f"not a regular expression: {error}", 'write "orders.*"') from None
    return text


def _partitions(text: str) -> tuple[Partition, ...]:
    found = []
    for topic, numbers in _json("assign", text).items():
        if not isinstance(numbers, list) or not all(type(number) is int and number >= 0 for number in numbers):
            problem = f"topic {topic!r} must have a list of partitions' numbers"
            raise BadParameter("assign", text, problem, 'write for example {"orders": [0, 1]}')
        found += [Partition(topic, number) for number in numbers]
    return tuple(found)


def _beginning(given: Mapping[str, str]) -> Beginning:
    """As in Spark: a timestamp for all counts more than timestamps by partition, these more than offsets."""
    strategy = choice(given, "startingOffsetsByTimestampStrategy", ("error", "latest"))
    stragglers: Stragglers = "latest" if strategy == "latest" else "error"
    if "startingtimestamp" in given:
        return Beginning(timestamp_ms=_timestamp_ms(given["startingtimestamp"]), beyond_the_end=stragglers)
    if "startingoffsetsbytimestamp" in given:
        name = "startingOffsetsByTimestamp"
        value = _json(name, given[name.lower()])
        return Beginning(timestamps_ms=parse_positions(name, value, least=0), beyond_the_end=stragglers)
    text = given.get("startingoffsets", "latest").strip()
    if text.lower() in ("earliest", "latest"):
        return Beginning(EARLIEST if text.lower() == "earliest" else LATEST)
    value = _json("startingOffsets", text)
    return Beginning(positions=parse_positions("startingOffsets", value, least=EARLIEST))


def _timestamp_ms(text: str) -> int:
    if not text.strip().isdecimal():
        raise BadParameter(
            "startingTimestamp", text, "not a time", "write milliseconds since 1970, such as 1767225600000"
        )
    return int(text)


def _json(name: str, text: str) -> dict[str, object]:
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise BadParameter(name, text, "not a JSON object", 'write "earliest", "latest" or {"topic": {"0": 23}}')
    return value
