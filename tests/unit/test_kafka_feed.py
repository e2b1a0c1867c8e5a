"""What the Kafka feed tells and takes, on a cluster in memory."""

from __future__ import annotations

import json

import pytest

from headgate.errors import BadParameter, StateError
from headgate.sources.kafka.broker import DataLost
from headgate.sources.kafka.config import KafkaConfig
from headgate.sources.kafka.feed import GONE_AFTER_S, LOOK_S, KafkaFeed
from headgate.sources.kafka.memory import FileMemory, ForgetfulMemory
from headgate.sources.kafka.positions import Partition
from headgate.sources.kafka.sizes import RESAMPLE_S, RecordSizes
from tests.kafka_memory import MemoryCluster

A0, A1 = Partition("a", 0), Partition("a", 1)
NOW_S = 1000.0


def feed(cluster: MemoryCluster, **options: str) -> KafkaFeed:
    base = {"kafka.bootstrap.servers": "b:9092", "subscribe": "a", "startingOffsets": "earliest"}
    return KafkaFeed(KafkaConfig.parse({**base, **options}), cluster, ForgetfulMemory())


def filled(rows: int = 10) -> MemoryCluster:
    cluster = MemoryCluster(a=2)
    cluster.append(A0, *(NOW_S - 5 + 0.1 * k for k in range(rows)))
    return cluster


def test_beginnings() -> None:
    cluster = filled()
    assert feed(cluster).initial(NOW_S) == {"a": {"0": 0, "1": 0}}
    assert feed(cluster, startingOffsets="latest").initial(NOW_S) == {"a": {"0": 10, "1": 0}}
    named = json.dumps({"a": {"0": 4, "1": -1}})
    assert feed(cluster, startingOffsets=named).initial(NOW_S) == {"a": {"0": 4, "1": 0}}
    cluster.append(A1, NOW_S)
    at = str(round((NOW_S - 4.75) * 1000))
    assert feed(cluster, startingTimestamp=at).initial(NOW_S) == {"a": {"0": 3, "1": 0}}


def test_a_time_that_no_record_has_reached() -> None:
    later = str(round((NOW_S + 60) * 1000))
    with pytest.raises(BadParameter, match="startingTimestamp"):
        feed(filled(), startingTimestamp=later).initial(NOW_S)
    found = feed(filled(), startingTimestamp=later, startingOffsetsByTimestampStrategy="latest").initial(NOW_S)
    assert found == {"a": {"0": 10, "1": 0}}


def test_a_topic_that_is_not_there_is_named() -> None:
    with pytest.raises(BadParameter, match="orders"):
        feed(filled(), subscribe="a,orders").initial(NOW_S)


def test_positions_are_given_for_all_partitions() -> None:
    with pytest.raises(BadParameter, match="a-1"):
        feed(filled(), startingOffsets=json.dumps({"a": {"0": 4}})).initial(NOW_S)


def test_the_beginning_is_remembered(tmp_path) -> None:
    cluster, path = filled(), str(tmp_path / "state" / "kafka.json")
    config = KafkaConfig.parse({"kafka.bootstrap.servers": "b:9092", "subscribe": "a"})
    first = KafkaFeed(config, cluster, FileMemory(path)).initial(NOW_S)
    cluster.append(A0, NOW_S)
    assert KafkaFeed(config, cluster, FileMemory(path)).initial(NOW_S + 9) == first == {"a": {"0": 10, "1": 0}}


def test_a_backlog_is_as_old_as_its_timestamps() -> None:
    cluster = MemoryCluster(a=1)
    cluster.append(A0, *(NOW_S - 600 + k for k in range(600)))
    pending = feed(cluster).pending({"a": {"0": 300}}, NOW_S)
    assert pending.rows == 300
    assert pending.oldest_at_s == pytest.approx(NOW_S - 300, abs=0.6 * 300)  # ages are probed in growing steps
    assert pending.oldest_at_s is not None and pending.oldest_at_s <= NOW_S - 150


def test_between_looks_the_broker_is_asked_when_records_came() -> None:
    cluster = MemoryCluster(a=1)
    reading = feed(cluster)
    start = {"a": {"0": 0}}
    assert reading.pending(start, NOW_S).empty
    cluster.append(A0, *(NOW_S + 1.9 + 0.01 * k for k in range(10)))  # late in the four seconds until the next look
    pending = reading.pending(start, NOW_S + 4)
    assert pending.rows == 10 and pending.oldest_at_s == pytest.approx(NOW_S + 1.9, abs=0.5)
    stamps = reading.take(start, None, NOW_S + 4).arrivals
    assert stamps.total == 10 and stamps.newest_s == pytest.approx(NOW_S + 2.0, abs=0.5)


def test_a_record_replayed_from_long_ago_has_arrived_now() -> None:
    cluster = MemoryCluster(a=1)
    reading = feed(cluster)
    assert reading.pending({"a": {"0": 0}}, NOW_S).empty
    cluster.append(A0, 5.0)  # its producer stamped it decades ago
    pending = reading.pending({"a": {"0": 0}}, NOW_S + 2)
    assert pending.oldest_at_s is not None and NOW_S <= pending.oldest_at_s <= NOW_S + 2


def test_seen_ignores_timestamps() -> None:
    cluster = MemoryCluster(a=1)
    cluster.append(A0, 5.0, 6.0)
    assert feed(cluster, arrival="seen").pending({"a": {"0": 0}}, NOW_S).oldest_at_s == NOW_S


def test_looks_are_not_too_frequent() -> None:
    cluster = filled()
    reading = feed(cluster)
    reading.pending({"a": {"0": 10, "1": 0}}, NOW_S)
    asked = cluster.requests
    reading.pending({"a": {"0": 10, "1": 0}}, NOW_S + LOOK_S / 2)
    assert cluster.requests == asked


def test_room_goes_to_the_largest_backlog() -> None:
    cluster = filled(10)
    cluster.append(A1, *(NOW_S - 1 for _ in range(4)))
    taken = feed(cluster).take({"a": {"0": 0, "1": 0}}, 6, NOW_S)
    assert taken.end == {"a": {"0": 6, "1": 0}} and taken.rows == 6


def weighed(cluster: MemoryCluster, **options: str) -> KafkaFeed:
    base = {"kafka.bootstrap.servers": "b:9092", "subscribe": "a", "startingOffsets": "earliest"}
    config = KafkaConfig.parse({**base, "backlogUnit": "bytes", **options})
    return KafkaFeed(config, cluster, ForgetfulMemory(), RecordSizes(cluster.sample))


def test_in_bytes_room_goes_to_the_largest_records() -> None:
    cluster = filled(10)
    cluster.append(A1, *(NOW_S - 1 for _ in range(4)))
    cluster.sizes = {A0: 100, A1: 5_000}
    start = {"a": {"0": 0, "1": 0}}
    assert weighed(cluster).take(start, 4, NOW_S).end == {"a": {"0": 0, "1": 4}}
    assert feed(cluster).take(start, 4, NOW_S).end == {"a": {"0": 4, "1": 0}}
    # Other ways of composing know no backlog.
    assert weighed(cluster, compose="round-robin").take(start, 4, NOW_S).end == {"a": {"0": 2, "1": 2}}


def test_records_of_unknown_size_are_as_large_as_the_others() -> None:
    cluster = filled(10)
    cluster.append(A1, *(NOW_S - 1 for _ in range(4)))
    start = {"a": {"0": 0, "1": 0}}
    assert weighed(cluster).take(start, 6, NOW_S).end == {"a": {"0": 6, "1": 0}}
    cluster.sizes = {A0: 100}
    assert weighed(cluster).take(start, 6, NOW_S).end == {"a": {"0": 6, "1": 0}}


def test_sizes_are_looked_at_now_and_then_and_followed() -> None:
    cluster = filled(10)
    cluster.sizes = {A0: 100}
    sizes = RecordSizes(cluster.sample)
    for now_s, asked in ((NOW_S, 1), (NOW_S + RESAMPLE_S - 1, 1), (NOW_S + RESAMPLE_S, 2)):
        sizes.refresh({A0: 0}, now_s)
        assert cluster.requests == asked
    assert sizes.weights([A0, A1]) == [100.0, 100.0]
    cluster.sizes = {A0: 300, A1: 0}
    sizes.refresh({A0: 0, A1: 0}, NOW_S + 2 * RESAMPLE_S)
    assert sizes.weights([A0, A1]) == [200.0, 1.0]  # what is empty still weighs something


def test_oldest_goes_by_arrival() -> None:
    cluster = MemoryCluster(a=2)
    cluster.append(A0, *(NOW_S - 0.2 for _ in range(10)))
    cluster.append(A1, *(NOW_S - 20.0 for _ in range(4)))
    taken = feed(cluster, compose="oldest").take({"a": {"0": 0, "1": 0}}, 4, NOW_S)
    assert taken.end == {"a": {"0": 0, "1": 4}}


def test_records_that_were_deleted_are_an_error_or_counted() -> None:
    cluster = filled()
    cluster.trim(A0, 7)
    start = {"a": {"0": 2, "1": 0}}
    with pytest.raises(DataLost, match=r"begins at 7 now: 5 records.*failOnDataLoss"):
        feed(cluster).take(start, None, NOW_S)
    taken = feed(cluster, failOnDataLoss="false").take(start, None, NOW_S)
    assert (taken.rows, taken.skipped_rows) == (3, 5)
    assert taken.end == {"a": {"0": 10, "1": 0}}


def test_a_topic_that_was_made_anew() -> None:
    start = {"a": {"0": 50, "1": 0}}
    with pytest.raises(DataLost, match="made anew"):
        feed(filled()).take(start, None, NOW_S)
    reading = feed(filled(), failOnDataLoss="false")
    taken = reading.take(start, None, NOW_S)
    assert taken.rows == 10 and taken.end["a"]["0"] == 10
    assert [share["slices"] for share in reading.ranges(start, taken.end, 1)] == [[["a", 0, 0, 10]]]


def test_a_partition_is_gone_only_after_a_while() -> None:
    cluster = filled()
    reading = feed(cluster, failOnDataLoss="true")
    start = {"a": {"0": 10, "1": 0}}
    assert reading.pending(start, NOW_S).empty
    stamps = cluster.stamps.pop(A1)  # brokers that restart forget for a moment
    cluster.append(A0, NOW_S + 3)
    assert reading.take(start, None, NOW_S + 3).end == {"a": {"0": 11, "1": 0}}
    cluster.stamps[A1] = stamps
    assert reading.take(start, None, NOW_S + 6).end == {"a": {"0": 11, "1": 0}}
    del cluster.stamps[A1]
    assert not reading.pending(start, NOW_S + 9).empty
    with pytest.raises(DataLost, match="a-1 is gone"):
        reading.take(start, None, NOW_S + 9 + GONE_AFTER_S + 3)


def test_new_partitions_begin_at_their_first_record() -> None:
    cluster = filled()
    reading = feed(cluster)
    start = {"a": {"0": 10, "1": 0}}
    assert reading.pending(start, NOW_S).empty
    cluster.stamps[Partition("a", 2)] = [NOW_S + 1, NOW_S + 2]
    taken = reading.take(start, None, NOW_S + 5)
    assert taken.rows == 2 and taken.end == {"a": {"0": 10, "1": 0, "2": 2}}
    assert [share["slices"] for share in reading.ranges(start, taken.end, 2)] == [[["a", 2, 0, 2]]]


def test_frozen_feeds_end() -> None:
    cluster = filled()
    reading = feed(cluster)
    reading.freeze(NOW_S)
    cluster.append(A0, NOW_S + 1)
    taken = reading.take({"a": {"0": 0, "1": 0}}, None, NOW_S + 9)
    assert taken.rows == 10
    assert reading.pending(taken.end, NOW_S + 99).empty


def test_large_batches_are_cut_into_equal_tasks() -> None:
    reading = feed(MemoryCluster(a=2))
    [one] = reading.ranges({"a": {"0": 0, "1": 0}}, {"a": {"0": 900, "1": 20}}, 2)
    assert one["slices"] == [["a", 0, 0, 900], ["a", 1, 0, 20]]
    shares = reading.ranges({"a": {"0": 0, "1": 0}}, {"a": {"0": 90_000, "1": 10_000}}, 2)
    assert [share["slices"] for share in shares] == [
        [["a", 0, 0, 50_000]],
        [["a", 0, 50_000, 90_000], ["a", 1, 0, 10_000]],
    ]


def test_in_bytes_tasks_have_equally_many() -> None:
    cluster = MemoryCluster(a=2)
    cluster.append(A0, NOW_S)
    cluster.append(A1, NOW_S)
    cluster.sizes = {A0: 100, A1: 300}
    reading, start = weighed(cluster), {"a": {"0": 0, "1": 0}}
    reading.take(start, None, NOW_S)
    shares = reading.ranges(start, {"a": {"0": 60_000, "1": 60_000}}, 2)
    assert [share["slices"] for share in shares] == [
        [["a", 0, 0, 60_000], ["a", 1, 0, 20_000]],
        [["a", 1, 20_000, 60_000]],
    ]


def test_min_partitions() -> None:
    reading = feed(MemoryCluster(a=1), minPartitions="3")
    assert len(reading.ranges({"a": {"0": 0}}, {"a": {"0": 9}}, 2)) == 3


def test_an_offset_of_another_source_is_refused() -> None:
    with pytest.raises(StateError, match="new checkpoint"):
        feed(filled()).pending({"files": 3}, NOW_S)
