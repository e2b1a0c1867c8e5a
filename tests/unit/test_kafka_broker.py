"""What librdkafka says, without a Kafka: settings it does not know, nobody there, nobody leads, refusals."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from unittest.mock import Mock

import pytest
from confluent_kafka import KafkaError, KafkaException

from headgate.errors import BadParameter
from headgate.sources.kafka.broker import Broker, KafkaTrouble
from headgate.sources.kafka.config import KafkaConfig
from headgate.sources.kafka.positions import Partition
from tests.kafka_mock import NOBODY as NO_BROKER
from tests.kafka_mock import MockCluster

NOBODY = {"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "orders", "kafkaConsumer.pollTimeoutMs": "300"}


@pytest.mark.parametrize(("name", "value"), [("no.such.thing", "1"), ("socket.timeout.ms", "soon")])
def test_a_setting_that_cannot_be_is_named(name: str, value: str) -> None:
    with pytest.raises(BadParameter, match=name):
        Broker(KafkaConfig.parse({**NOBODY, f"kafka.{name}": value}))


def test_nobody_there_is_an_error_after_the_patience() -> None:
    with pytest.raises(KafkaTrouble, match=r"orders of 127\.0\.0\.1:1: cannot list topics"):
        Broker(KafkaConfig.parse(NOBODY)).partitions()


@pytest.fixture
def cluster() -> Iterator[MockCluster]:
    made = MockCluster()
    yield made
    made.close()


def broker_of(cluster: MockCluster, **options: str) -> Broker:
    given = {"kafka.bootstrap.servers": cluster.address, "subscribe": "orders", "kafkaConsumer.pollTimeoutMs": "20000"}
    if "subscribePattern" in options:
        del given["subscribe"]
    return Broker(KafkaConfig.parse(given | options))


ORDERS = [Partition("orders", 0), Partition("orders", 1)]


def test_partitions_that_nobody_leads_are_waited_for(cluster: MockCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their broker restarts, others answer. librdkafka remembers that nobody leads them, unless it is made to look."""
    monkeypatch.setattr("headgate.sources.kafka.broker.RETRY_S", 0.05)
    cluster.create("orders", 2)
    broker = broker_of(cluster)
    assert broker.ends(ORDERS) == dict.fromkeys(ORDERS, 0)
    for partition in ORDERS:
        cluster.lead(*partition, NO_BROKER)
    back = [threading.Timer(0.3, cluster.lead, (*partition, 2)) for partition in ORDERS]
    for timer in back:
        timer.start()
    found = broker.ends(ORDERS)
    for timer in back:
        timer.join()  # before the cluster is closed
    assert found == dict.fromkeys(ORDERS, 0)


def test_partitions_that_are_gone_are_not_waited_for(cluster: MockCluster) -> None:
    assert broker_of(cluster).ends(ORDERS) == {}


def test_a_pattern_leaves_out_kafkas_own_topics(cluster: MockCluster) -> None:
    for topic in ("orders", "__consumer_offsets", "__transaction_state", "__mine"):
        cluster.create(topic)
    assert sorted(broker_of(cluster, subscribePattern=".*")._topics_like(".*")) == ["__mine", "orders"]
    with_own = broker_of(cluster, subscribePattern=".*", **{"kafka.exclude.internal.topics": "false"})
    assert len(with_own._topics_like(".*")) == 4


def test_a_cluster_has_one_name_whichever_brokers_are_asked(cluster: MockCluster) -> None:
    one, other = cluster.address.split(",")
    names = {broker_of(cluster, **{"kafka.bootstrap.servers": each}).identity() for each in (one, other)}
    assert len(names) == 1 and "" not in names


REFUSED, TIMED_OUT = KafkaError(KafkaError._AUTHENTICATION), KafkaError(KafkaError._TIMED_OUT)


def failing(*errors: KafkaError, then: Callable[[], None] = lambda: None) -> Mock:
    """A request that fails so often and works then."""
    left = [KafkaException(error) for error in errors]

    def request() -> str:
        then()
        if left:
            raise left.pop(0)
        return "done"

    return Mock(side_effect=request)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> Broker:
    monkeypatch.setattr("headgate.sources.kafka.broker.RETRY_S", 0.01)
    return Broker(KafkaConfig.parse(NOBODY))


def test_an_old_refusal_does_not_end_a_query(impatient: Broker) -> None:
    impatient._refusal.note(REFUSED)
    assert impatient._patiently("try", failing(TIMED_OUT)) == "done"
    impatient._refusal.note(REFUSED)
    with pytest.raises(KafkaTrouble, match="imed out"):
        impatient._patiently("try", failing(*[TIMED_OUT] * 1000))


@pytest.mark.parametrize(("code", "new"), [(KafkaError.FENCED_LEADER_EPOCH, True), (KafkaError._TIMED_OUT, False)])
def test_a_client_that_remembers_an_old_leader_is_replaced(code: int, new: bool, impatient: Broker) -> None:
    before = impatient._admin
    assert impatient._patiently("try", failing(KafkaError(code))) == "done"
    assert (impatient._admin is not before) == new


def test_one_broker_that_refuses_does_not_end_a_query(impatient: Broker) -> None:
    request = failing(TIMED_OUT, TIMED_OUT, then=lambda: impatient._refusal.note(REFUSED))
    assert impatient._patiently("try", request) == "done"


def test_a_refusal_that_lasts_is_told_before_the_patience_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headgate.sources.kafka.broker.RETRY_S", 0.01)
    monkeypatch.setattr("headgate.sources.kafka.broker.REFUSED_S", 0.1)
    broker = Broker(KafkaConfig.parse({**NOBODY, "kafkaConsumer.pollTimeoutMs": "600000"}))
    request = failing(*[TIMED_OUT] * 10_000, then=lambda: broker._refusal.note(REFUSED))
    with pytest.raises(KafkaTrouble, match="uthentication"):
        broker._patiently("try", request)
    with pytest.raises(KafkaTrouble, match="Topic authorization failed"):
        broker._patiently("try", failing(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)))
