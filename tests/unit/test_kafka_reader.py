"""Reading a share when a broker refuses, on a consumer that is only played."""

from __future__ import annotations

from unittest.mock import Mock

import pytest
from confluent_kafka import KafkaError

from headgate.sources.kafka.broker import REFUSED_S, KafkaTrouble, Refusal
from headgate.sources.kafka.config import KafkaConfig
from headgate.sources.kafka.positions import Slice
from headgate.sources.kafka.reader import SliceReading, rested

REFUSED = KafkaError(KafkaError._AUTHENTICATION)


class EndOfPartition:
    """The message with which a partition ends, as one does whose last records were aborted."""

    def topic(self) -> str:
        return "orders"

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return 10

    def error(self) -> KafkaError:
        return KafkaError(KafkaError._PARTITION_EOF)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Mock:
    """Stands still unless it is set."""
    made = Mock(return_value=100.0)
    monkeypatch.setattr("headgate.sources.kafka.reader.time.monotonic", made)
    return made


def reading(consumer: Mock, refusal: Refusal, **options: str) -> SliceReading:
    config = KafkaConfig.parse({"kafka.bootstrap.servers": "b:9092", "subscribe": "orders", **options})
    return SliceReading(consumer, refusal, config, [Slice("orders", 0, 0, 10)])


def test_one_broker_that_refuses_does_not_end_a_task(clock: Mock) -> None:
    refusal = Refusal()
    consumer = Mock(consume=Mock(side_effect=[[], [EndOfPartition()]]))
    refusal.note(REFUSED)
    assert list(reading(consumer, refusal).batches()) == []


@pytest.mark.parametrize(("options", "after_s"), [({}, REFUSED_S), ({"kafkaConsumer.pollTimeoutMs": "1000"}, 1.0)])
def test_a_refusal_counts_when_nothing_comes_for_a_while(clock: Mock, options: dict[str, str], after_s: float) -> None:
    def wait(*_: object) -> list[EndOfPartition]:
        clock.return_value += 0.3
        return []

    refusal = Refusal()
    refusal.note(REFUSED)
    with pytest.raises(KafkaTrouble, match="uthentication"):
        list(reading(Mock(consume=wait), refusal, **options).batches())
    assert after_s < clock() - 100.0 < after_s + 0.6


def test_what_an_idle_consumer_was_told_is_forgotten() -> None:
    refusal = Refusal()
    consumer = Mock(poll=Mock(side_effect=lambda _: refusal.note(REFUSED)))
    assert rested(consumer, refusal) == (consumer, refusal)
    assert refusal.error is None and consumer.poll.called
