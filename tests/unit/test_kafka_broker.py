"""What librdkafka says at once, without a broker: settings it does not know, and nobody there."""

from __future__ import annotations

import pytest

from headgate.errors import BadParameter
from headgate.sources.kafka.broker import Broker, KafkaTrouble
from headgate.sources.kafka.config import KafkaConfig

NOBODY = {"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "orders", "kafkaConsumer.pollTimeoutMs": "300"}


@pytest.mark.parametrize(("name", "value"), [("no.such.thing", "1"), ("socket.timeout.ms", "soon")])
def test_a_setting_that_cannot_be_is_named(name: str, value: str) -> None:
    with pytest.raises(BadParameter, match=name):
        Broker(KafkaConfig.parse({**NOBODY, f"kafka.{name}": value}))


def test_nobody_there_is_an_error_after_the_patience() -> None:
    with pytest.raises(KafkaTrouble, match=r"orders of 127\.0\.0\.1:1: cannot list topics"):
        Broker(KafkaConfig.parse(NOBODY)).partitions()
