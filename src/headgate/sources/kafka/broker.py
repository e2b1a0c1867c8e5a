"""What the planning process asks a Kafka cluster: which partitions there are, and offsets. Never the records."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from headgate.errors import BadParameter, HeadgateError
from headgate.sources.kafka.config import KafkaConfig, Subscription
from headgate.sources.kafka.positions import Partition, Positions

if TYPE_CHECKING:
    from confluent_kafka import KafkaError
    from confluent_kafka.admin import ClusterMetadata

REQUEST_S = 10.0
"""A broker that has not answered by then is asked again."""

RETRY_S = 0.5

REFUSED_S = 5.0
"""So long nothing may have worked before a refusal counts: one broker of several may refuse while others let us in."""

INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
"""Kafka's own: a pattern does not mean them, as with the Java client."""

Answer = TypeVar("Answer")


class KafkaTrouble(HeadgateError, RuntimeError):
    """The cluster cannot be read, and waiting would not help."""


class DataLost(HeadgateError, RuntimeError):
    """Records that the query has not read are no longer there."""


class Cluster(Protocol):
    """The port that the feed stands on; tests have one in memory."""

    def partitions(self) -> set[Partition]:
        """Those that the subscription means, now."""

    def begins(self, partitions: Iterable[Partition]) -> Positions:
        """The first record that is there."""

    def ends(self, partitions: Iterable[Partition], *, uncommitted: bool = False) -> Positions:
        """The next record that will come and may be read; `uncommitted` ones may not, if so configured."""

    def begins_at(self, partitions: Iterable[Partition], times_s: Iterable[float]) -> list[Positions]:
        """For each time, the first record of that age or younger; partitions that have none are left out."""


class Broker:
    """A cluster through librdkafka."""

    def __init__(self, config: KafkaConfig) -> None:
        self._subscription = config.subscription
        self._title = str(config)
        self._patience_s = config.patience_s
        self._request_s = min(REQUEST_S, config.patience_s)
        self._committed = config.read_committed
        self._refusal = Refusal()
        self._settings = client_settings(config.settings) | {"error_cb": self._refusal.note}
        self._connect()

    def _connect(self) -> None:
        from confluent_kafka.admin import AdminClient

        with checked_settings():
            self._admin = AdminClient(self._settings)

    def identity(self) -> str:
        """The cluster's own name for itself, which stays when other brokers of it are named."""
        return self._patiently("ask for the cluster's name", lambda: str(self._metadata().cluster_id))

    def partitions(self) -> set[Partition]:
        return self._patiently("list topics", self._partitions)

    def begins(self, partitions: Iterable[Partition]) -> Positions:
        from confluent_kafka.admin import OffsetSpec

        return self._offsets(partitions, [OffsetSpec.earliest()])[0]

    def ends(self, partitions: Iterable[Partition], *, uncommitted: bool = False) -> Positions:
        from confluent_kafka.admin import OffsetSpec

        return self._offsets(partitions, [OffsetSpec.latest()], committed=self._committed and not uncommitted)[0]

    def begins_at(self, partitions: Iterable[Partition], times_s: Iterable[float]) -> list[Positions]:
        from confluent_kafka.admin import OffsetSpec

        found = self._offsets(partitions, [OffsetSpec.for_timestamp(max(0, round(at_s * 1000))) for at_s in times_s])
        return [{partition: offset for partition, offset in each.items() if offset >= 0} for each in found]

    def _partitions(self) -> set[Partition]:
        wanted = self._subscription
        names = self._topics_like(wanted.pattern) if wanted.pattern is not None else _topic_names(wanted)
        there = self._describe(names) if names else {}
        found = {Partition(topic, number) for topic, numbers in there.items() for number in numbers}
        return found & set(wanted.partitions) if wanted.partitions else found

    def _topics_like(self, pattern: str) -> list[str]:
        left_out = frozenset() if self._subscription.with_internal else INTERNAL_TOPICS
        return [name for name in self._metadata().topics if name not in left_out and re.fullmatch(pattern, name)]

    def _metadata(self) -> ClusterMetadata:
        """All topics. Other requests go by what librdkafka remembers of these, and this makes it look again."""
        return self._admin.list_topics(timeout=self._request_s)

    def _describe(self, names: list[str]) -> dict[str, list[int]]:
        """Partitions by topic. Asking in this way does not create a topic that is not there."""
        from confluent_kafka import KafkaException, TopicCollection

        there: dict[str, list[int]] = {}
        for name, answer in self._admin.describe_topics(
            TopicCollection(names), request_timeout=self._request_s
        ).items():
            try:
                there[name] = [partition.id for partition in answer.result().partitions]
            except KafkaException as error:
                if not is_missing(error.args[0]):
                    raise
        return there

    def _offsets(self, partitions: Iterable[Partition], specs: list[Any], committed: bool = False) -> list[Positions]:
        """One request per spec, all under way at once."""
        wanted = list(partitions)
        if not wanted or not specs:
            return [{} for _ in specs]
        return self._patiently("list offsets", lambda: self._list_offsets(wanted, specs, committed))

    def _list_offsets(self, partitions: list[Partition], specs: list[Any], committed: bool) -> list[Positions]:
        from confluent_kafka import IsolationLevel, KafkaException, TopicPartition

        level = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
        asked = [
            self._admin.list_offsets(
                {TopicPartition(*partition): spec for partition in partitions},
                isolation_level=level,
                request_timeout=self._request_s,
            )
            for spec in specs
        ]
        try:
            return [_offsets_of(answers) for answers in asked]
        except KafkaException as error:
            if not is_leaderless(error.args[0]) or self._any_there(partitions):
                raise
            return [{} for _ in specs]

    def _any_there(self, partitions: list[Partition]) -> bool:
        """No broker leads a partition that is gone, nor one whose broker restarts: that one will come back."""
        topics = self._metadata().topics
        return any(each.topic in topics and each.number in topics[each.topic].partitions for each in partitions)

    def _patiently(self, what: str, request: Callable[[], Answer]) -> Answer:
        """A broker that restarts is waited for: until then the query rests, it does not fail."""
        from confluent_kafka import KafkaException

        begun_s = time.monotonic()
        self._admin.poll(0)  # refusals come by another way
        self._refusal.forget()  # an old one says nothing about this request
        while True:
            try:
                return request()
            except KafkaException as error:
                self._admin.poll(0)
                failed, tried_s = error.args[0], time.monotonic() - begun_s
                refused = self._refusal.error is not None and tried_s >= REFUSED_S
                if is_hopeless(failed) or refused or tried_s >= self._patience_s:
                    why = failed if is_hopeless(failed) else self._refusal.error or failed
                    raise KafkaTrouble(f"{self._title}: cannot {what}: {why.str()}") from None
            time.sleep(RETRY_S)
            if is_outdated(failed):
                self._connect()


@contextmanager
def checked_settings() -> Iterator[None]:
    """librdkafka's word about a setting it does not know, as a parameter that the user wrote."""
    from confluent_kafka import KafkaException

    try:
        yield
    except KafkaException as error:
        remedy = "see librdkafka's list of settings; names of Kafka's Java client that differ are in docs/kafka.md"
        raise BadParameter("kafka.*", "…", error.args[0].str(), remedy) from None


class Refusal:
    """Why a broker does not let us in: librdkafka tells it to a callback and then goes on trying."""

    def __init__(self) -> None:
        self.error: KafkaError | None = None

    def note(self, error: KafkaError) -> None:
        if is_hopeless(error):
            self.error = error

    def forget(self) -> None:
        self.error = None


def client_settings(settings: Mapping[str, str]) -> dict[str, Any]:
    """What every client has, reading or not."""
    return {"client.id": "headgate", "log_level": 2, **_without_consumer_settings(settings)}


_CONSUMER_ONLY = (
    "fetch.", "queued.", "max.partition.fetch", "group.", "isolation.level", "session.", "max.poll.", "check.crcs",
)  # fmt: skip


def _without_consumer_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """An admin client is no consumer, and warns about each setting that only a consumer has."""
    return {name: value for name, value in settings.items() if not name.startswith(_CONSUMER_ONLY)}


def _topic_names(wanted: Subscription) -> list[str]:
    return sorted({*wanted.topics, *(partition.topic for partition in wanted.partitions)})


def _offsets_of(answers: Mapping[Any, Future[Any]]) -> Positions:
    """Offsets by partition; one that is gone has none."""
    from confluent_kafka import KafkaException

    found: Positions = {}
    for asked, answer in answers.items():
        try:
            found[Partition(asked.topic, asked.partition)] = answer.result().offset
        except KafkaException as error:
            if not is_missing(error.args[0]):
                raise
    return found


def is_missing(error: KafkaError) -> bool:
    """Whether the topic or partition does not exist (any more)."""
    from confluent_kafka import KafkaError as Codes

    codes = (
        Codes.UNKNOWN_TOPIC_OR_PART, Codes._UNKNOWN_TOPIC, Codes._UNKNOWN_PARTITION, Codes.UNKNOWN_TOPIC_ID,
    )  # fmt: skip
    return error.code() in codes


def is_leaderless(error: KafkaError) -> bool:
    """Whether no broker leads any of the partitions that were asked about (the first), or one of them."""
    from confluent_kafka import KafkaError as Codes

    return error.code() in (Codes._NOENT, Codes.LEADER_NOT_AVAILABLE)


def is_outdated(error: KafkaError) -> bool:
    """Whether librdkafka asked by what it remembers of leaders before an election.

    An admin client may remember that for ever (seen after a broker's restart: minutes of FENCED_LEADER_EPOCH), so
    only a new one asks anew.
    """
    from confluent_kafka import KafkaError as Codes

    codes = (Codes.FENCED_LEADER_EPOCH, Codes.UNKNOWN_LEADER_EPOCH, Codes.NOT_LEADER_FOR_PARTITION)
    return error.code() in codes


def is_hopeless(error: KafkaError) -> bool:
    """Whether asking again would give the same answer: wrong credentials, forbidden, or not understood."""
    from confluent_kafka import KafkaError as Codes

    codes = (
        Codes._AUTHENTICATION, Codes.SASL_AUTHENTICATION_FAILED, Codes.TOPIC_AUTHORIZATION_FAILED,
        Codes.CLUSTER_AUTHORIZATION_FAILED, Codes._SSL, Codes.UNSUPPORTED_VERSION, Codes._INVALID_ARG,
        Codes.TOPIC_EXCEPTION,
    )  # fmt: skip
    return error.fatal() or error.code() in codes
