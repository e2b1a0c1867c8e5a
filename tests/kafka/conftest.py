"""One real Kafka and one Spark, with Spark's own connector, for all tests of this folder."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from headgate import Headgate, session
from headgate.bench.kafka.broker import LocalBroker
from tests.kafka_jars import jars_or_skip
from tests.spark.conftest import hg

__all__ = ["hg"]  # the same fixture, on this folder's Spark

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def jars() -> list[Path]:
    return jars_or_skip()


@pytest.fixture(scope="session")
def broker(jars: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalBroker]:
    with LocalBroker(tmp_path_factory.mktemp("kafka")) as made:
        yield made


@pytest.fixture(scope="session")
def spark(jars: list[Path]) -> Iterator[SparkSession]:
    conf = {"spark.ui.enabled": "false", "spark.jars": ",".join(map(str, jars))}
    made = session("headgate-kafka-tests", master="local[2]", conf=conf)
    yield made
    made.stop()


class Topic:
    """A topic of a test's own."""

    def __init__(self, broker: LocalBroker, partitions: int, name: str | None, config: dict[str, str]) -> None:
        from confluent_kafka.admin import AdminClient, NewTopic

        self.broker = broker
        self.name = name or f"topic-{next(_numbers)}"
        self._admin = AdminClient({"bootstrap.servers": broker.address, "log_level": 0})
        self._wait(self._admin.create_topics([NewTopic(self.name, partitions, 1, config=config)]))

    @staticmethod
    def _wait(answers: dict[Any, Any]) -> None:
        for answer in answers.values():
            answer.result()

    def produce(self, values: Iterable[object], partition: int | None = None, **extra: Any) -> None:
        """Values as text, spread over the partitions by key unless told otherwise."""
        producer = self.producer()
        send_all(producer, self.name, values, partition, **extra)
        assert producer.flush(30) == 0

    def producer(self, **config: Any) -> Any:
        from confluent_kafka import Producer

        return Producer({"bootstrap.servers": self.broker.address, "linger.ms": 5, "log_level": 0, **config})

    def add_partitions(self, total: int) -> None:
        from confluent_kafka.admin import NewPartitions

        self._wait(self._admin.create_partitions([NewPartitions(self.name, total)]))

    def delete(self) -> None:
        self._wait(self._admin.delete_topics([self.name]))

    def trim(self, partition: int, before: int) -> None:
        """As retention does: the records before that offset are gone."""
        from confluent_kafka import TopicPartition

        self._wait(self._admin.delete_records([TopicPartition(self.name, partition, before)]))


def send_all(producer: Any, topic: str, values: Iterable[object], partition: int | None = None, **extra: Any) -> None:
    for value in values:
        where = {} if partition is None else {"partition": partition}
        producer.produce(topic, value=None if value is None else str(value), key=str(value), **where, **extra)
        producer.poll(0)


MakeTopic = Callable[..., Topic]


@pytest.fixture
def topic(broker: LocalBroker) -> MakeTopic:
    return lambda partitions=2, name=None, **config: Topic(broker, partitions, name, config)


def read(hg: Headgate, topic: Topic, **options: object) -> DataFrame:
    """The topic from its first record on, through Headgate."""
    reader = hg.readStream.format("headgate-kafka").option("kafka.bootstrap.servers", topic.broker.address)
    for name, value in ({"subscribe": topic.name, "startingOffsets": "earliest"} | options).items():
        reader = reader.option(name, str(value))
    return reader.load()


def read_with_spark(spark: SparkSession, topic: Topic, **options: object) -> DataFrame:
    """The same through Spark's own source."""
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", topic.broker.address)
    for name, value in ({"subscribe": topic.name, "startingOffsets": "earliest"} | options).items():
        reader = reader.option(name, str(value))
    return reader.load()
