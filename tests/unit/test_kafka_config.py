"""Options of the Kafka source: Spark's names and meanings, Java's settings translated, secrets kept."""

from __future__ import annotations

import json
import pickle

import pytest

from headgate.errors import BadParameter
from headgate.sources.kafka.config import KafkaConfig
from headgate.sources.kafka.positions import EARLIEST, LATEST, Partition
from headgate.sources.kafka.reader import consumer_settings
from headgate.sources.kafka.settings import shown, translate

BASE = {"kafka.bootstrap.servers": "b:9092", "subscribe": "orders"}
SERVERS = {"bootstrap.servers": "b:9092"}


def parse(**options: str) -> KafkaConfig:
    return KafkaConfig.parse({**BASE, **options})


def test_defaults_are_those_of_spark() -> None:
    config = parse()
    assert config.subscription.topics == ("orders",)
    assert config.beginning.everywhere == LATEST
    assert config.fail_on_data_loss and not config.include_headers and not config.read_committed
    assert config.max_offsets_per_trigger is None and config.patience_s == 120.0


def test_names_have_no_case() -> None:
    config = KafkaConfig.parse(
        {"KAFKA.Bootstrap.Servers": "b:9092", "SUBSCRIBE": "a, b", "STARTINGOFFSETS": "earliest",
         "failondataloss": "FALSE", "maxoffsetspertrigger": "5"}
    )  # fmt: skip
    assert config.subscription.topics == ("a", "b")
    assert config.beginning.everywhere == EARLIEST
    assert not config.fail_on_data_loss and config.max_offsets_per_trigger == 5


def test_beginnings() -> None:
    offsets = json.dumps({"orders": {"0": 23, "1": -2}})
    assert parse(startingOffsets=offsets).beginning.positions == {
        Partition("orders", 0): 23,
        Partition("orders", 1): -2,
    }
    assert parse(startingTimestamp="1000", startingOffsets="earliest").beginning.timestamp_ms == 1000
    times = json.dumps({"orders": {"0": 1000}})
    found = parse(startingOffsetsByTimestamp=times, startingOffsetsByTimestampStrategy="latest").beginning
    assert found.timestamps_ms == {Partition("orders", 0): 1000} and found.beyond_the_end == "latest"


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"subscribe": " , "}, "subscribe"),
        ({"assign": '{"orders": [0]}'}, "subscribe"),  # two ways at once
        ({"startingOffsets": "newest"}, "startingOffsets"),
        ({"startingOffsets": '{"orders": {"0": -3}}'}, "startingOffsets"),
        ({"startingOffsets": '{"orders": [1]}'}, "startingOffsets"),
        ({"startingTimestamp": "yesterday"}, "startingTimestamp"),
        ({"failOnDataLoss": "maybe"}, "failOnDataLoss"),
        ({"maxOffsetsPerTrigger": "0"}, "maxOffsetsPerTrigger"),
        ({"maxTriggerDelay": "5m"}, "maxTriggerDelay"),
        ({"maxRecordsPerPartition": "5"}, "maxRecordsPerPartition"),
        ({"fetchOffset.numRetries": "5"}, "fetchOffset.numRetries"),
        ({"fetchOffset.retryIntervalMs": "5"}, "fetchOffset.retryIntervalMs"),
        ({"startingOffsets": "{}"}, "startingOffsets"),
        ({"startingOffsets": '{"orders": {}}'}, "startingOffsets"),
        ({"startingOffsetsByTimestamp": "{}"}, "startingOffsetsByTimestamp"),
        ({"compose": "fairest"}, "compose"),
        ({"backlogUnit": "seconds"}, "backlogUnit"),
        ({"arrival": "guessed"}, "arrival"),
        ({"kafka.auto.offset.reset": "earliest"}, "kafka.auto.offset.reset"),
        ({"kafka.enable.auto.commit": "true"}, "kafka.enable.auto.commit"),
    ],
)
def test_what_cannot_be_used_is_named(options: dict[str, str], named: str) -> None:
    with pytest.raises(BadParameter) as caught:
        parse(**options)
    assert caught.value.parameter == named and caught.value.remedy


@pytest.mark.parametrize("value", ["{", "[]", '{"orders": 1}', '{"orders": [-1]}', '{"orders": ["0"]}', "{}"])
def test_assignments_are_checked(value: str) -> None:
    with pytest.raises(BadParameter):
        KafkaConfig.parse({"kafka.bootstrap.servers": "b:9092", "assign": value})


def test_a_pattern_must_be_one() -> None:
    with pytest.raises(BadParameter, match="regular expression"):
        KafkaConfig.parse({"kafka.bootstrap.servers": "b:9092", "subscribePattern": "orders("})


def test_a_pattern_means_kafkas_own_topics_only_if_told_so() -> None:
    options = {"kafka.bootstrap.servers": "b:9092", "subscribePattern": ".*"}
    assert not KafkaConfig.parse(options).subscription.with_internal
    asked = KafkaConfig.parse({**options, "kafka.exclude.internal.topics": "false"})
    assert asked.subscription.with_internal and "exclude.internal.topics" not in asked.settings
    with pytest.raises(BadParameter, match=r"kafka\.exclude\.internal\.topics"):
        KafkaConfig.parse({**options, "kafka.exclude.internal.topics": "some"})


def test_checksums_are_looked_at_unless_told_otherwise() -> None:
    assert consumer_settings(parse())["check.crcs"] is True
    assert consumer_settings(KafkaConfig.parse({**BASE, "kafka.check.crcs": "false"}))["check.crcs"] == "false"


def test_the_brokers_must_be_named() -> None:
    with pytest.raises(BadParameter, match=r"kafka\.bootstrap\.servers"):
        KafkaConfig.parse({"subscribe": "orders"})


def test_javas_log_in_is_read() -> None:
    line = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="me" password="p\\"w";'
    settings = translate({**SERVERS, "sasl.jaas.config": line, "sasl.mechanism": "PLAIN"})
    assert settings["sasl.username"] == "me" and settings["sasl.password"] == 'p"w'
    assert "sasl.jaas.config" not in settings


@pytest.mark.parametrize(
    ("written", "meant"),
    [(r"p\\w", r"p\w"), (r"p\'w", "p'w"), (r"p\tw\41", "p\tw!"), (r"p\w", "pw"), ("p#w", "p#w")],
)
def test_passwords_are_unescaped_as_java_does(written: str, meant: str) -> None:
    for quote in "\"'":
        line = f"PlainLoginModule required username={quote}me{quote} password={quote}{written}{quote};"
        assert translate({**SERVERS, "sasl.jaas.config": line})["sasl.password"] == meant


def test_a_log_in_of_another_kind_is_refused_without_showing_it() -> None:
    with pytest.raises(BadParameter) as caught:
        translate({**SERVERS, "sasl.jaas.config": 'Krb5LoginModule required keyTab="secret.keytab";'})
    assert "secret.keytab" not in str(caught.value)


def test_java_stores() -> None:
    assert translate({**SERVERS, "ssl.truststore.location": "/ca.pem"})["ssl.ca.location"] == "/ca.pem"
    pem = {**SERVERS, "ssl.keystore.location": "/me.pem", "ssl.keystore.type": "PEM"}
    assert translate(pem)["ssl.certificate.location"] == translate(pem)["ssl.key.location"] == "/me.pem"
    assert translate({**SERVERS, "ssl.keystore.location": "/me.p12"})["ssl.keystore.location"] == "/me.p12"
    for bad in ({"ssl.truststore.location": "/ca.jks"}, {"ssl.keystore.location": "/me.jks"}):
        with pytest.raises(BadParameter, match="keytool"):
            translate({**SERVERS, **bad})


def test_names_that_differ() -> None:
    settings = translate({**SERVERS, "fetch.max.wait.ms": "7", "max.poll.records": "500"})
    assert settings == {**SERVERS, "fetch.wait.max.ms": "7"}


SECRETS = {
    "kafka.sasl.password": "hush-1", "kafka.ssl.key.password": "hush-2", "kafka.ssl.keystore.password": "hush-3",
    "kafka.sasl.oauthbearer.client.secret": "hush-4", "kafka.ssl.key.pem": "hush-5",
    "kafka.sasl.oauthbearer.config": "hush-6",
}  # fmt: skip


def test_secrets_never_show() -> None:
    config = KafkaConfig.parse({**BASE, **SECRETS})
    assert "hush-1" in pickle.dumps(config).decode("latin-1")  # they do travel to the executors
    for text in (repr(config), str(config), f"{config}", repr(shown(config.settings))):
        assert "hush" not in text
