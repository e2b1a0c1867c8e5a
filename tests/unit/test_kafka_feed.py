"""What the Kafka feed tells and takes, on a cluster in memory."""

from __future__ import annotations

import json
import os
from pathlib import Path
from unittest.mock import Mock

import pytest
from fsspec.implementations.local import LocalFileSystem

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


def from_latest(cluster: MemoryCluster, folder: str, brokers: str = "b:9092") -> KafkaFeed:
    config = KafkaConfig.parse({"kafka.bootstrap.servers": brokers, "subscribe": "a"})
    return KafkaFeed(config, cluster, FileMemory(folder, "a, latest", cluster.identity))


@pytest.fixture(params=["disk", "memory"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """On a local disk, and on another filesystem."""
    return str(tmp_path / "state") if request.param == "disk" else f"memory://{tmp_path}/state"


def test_the_beginning_is_remembered(folder: str) -> None:
    cluster = filled()
    first = from_latest(cluster, folder).initial(NOW_S)
    cluster.append(A0, NOW_S)
    assert from_latest(cluster, folder).initial(NOW_S + 9) == first == {"a": {"0": 10, "1": 0}}
    assert from_latest(cluster, folder, "another-broker:9092").initial(NOW_S + 9) == first


def test_the_beginning_is_forgotten_when_nobody_will_ask_again(folder: str) -> None:
    """Another query, with a new checkpoint, begins where it is told to, not where the one before did."""
    cluster = filled()
    reading = from_latest(cluster, folder)
    reading.initial(NOW_S)
    cluster.append(A0, NOW_S)
    for _ in range(2):
        reading.forget({"a": {"0": 11, "1": 0}})
    assert from_latest(cluster, folder).initial(NOW_S + 9) == {"a": {"0": 11, "1": 0}}
    cluster.append(A0, NOW_S)
    from_latest(cluster, folder).forget({"a": {"0": 11, "1": 0}})  # a query that has gone on in another process
    assert from_latest(cluster, folder).initial(NOW_S + 9) == {"a": {"0": 12, "1": 0}}


def test_clusters_with_topics_of_one_name_begin_each_for_itself(folder: str) -> None:
    here, there = filled(10), filled(3)
    there.name = "another cluster"
    assert from_latest(here, folder).initial(NOW_S) == {"a": {"0": 10, "1": 0}}
    assert from_latest(there, folder).initial(NOW_S) == {"a": {"0": 3, "1": 0}}


def test_a_memory_that_cannot_be_removed_does_not_end_the_query(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster, folder = filled(), str(tmp_path)
    reading, end = from_latest(cluster, folder), {"a": {"0": 11, "1": 0}}
    reading.initial(NOW_S)
    with monkeypatch.context() as broken:
        broken.setattr(LocalFileSystem, "rm_file", Mock(side_effect=PermissionError))
        reading.forget(end)
    assert list(tmp_path.glob("kafka-*.json"))
    reading.forget(end)
    assert not list(tmp_path.glob("kafka-*.json"))


def test_the_memory_outlives_a_power_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced = Mock(side_effect=os.fsync)
    monkeypatch.setattr("os.fsync", synced)
    from_latest(filled(), str(tmp_path / "state")).initial(NOW_S)
    assert synced.call_count == 2  # the file and its name


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


def limited(deadline_s: float | None, cluster: MemoryCluster, **options: str) -> KafkaFeed:
    base = {"kafka.bootstrap.servers": "b:9092", "subscribe": "a", "startingOffsets": "earliest"}
    return KafkaFeed(KafkaConfig.parse({**base, **options}), cluster, ForgetfulMemory(), deadline_s=deadline_s)


def test_a_quiet_partition_is_not_left_behind_beyond_its_deadline() -> None:
    for deadline_s, served in ((8.0, 3), (None, 0)):
        cluster = MemoryCluster(a=2)
        cluster.append(A1, *(NOW_S - 1 for _ in range(3)))
        cluster.append(A0, *(NOW_S for _ in range(100)))
        reading, offset = limited(deadline_s, cluster), {"a": {"0": 0, "1": 0}}
        for second in range(5):
            offset = reading.take(offset, 10, NOW_S + second).end
            cluster.append(A0, *(NOW_S + second + 1 for _ in range(10)))
        assert offset["a"]["1"] == served


def test_when_all_is_urgent_the_oldest_goes_first() -> None:
    cluster = filled(10)
    cluster.append(A1, *(NOW_S - 9 for _ in range(4)))
    taken = limited(1.0, cluster).take({"a": {"0": 0, "1": 0}}, 5, NOW_S)
    assert taken.end == {"a": {"0": 1, "1": 4}}


@pytest.mark.parametrize("compose", ["lbf", "proportional", "round-robin"])
def test_among_equals_everybody_is_the_first_in_turn(compose: str) -> None:
    """Room for fewer than there are partitions: none is left out for ever."""
    cluster = MemoryCluster(a=4)
    served = dict.fromkeys(range(4), 0)
    offset, reading = {"a": dict.fromkeys(map(str, range(4)), 0)}, limited(None, cluster, compose=compose)
    for step in range(12):
        for number in served:
            cluster.append(Partition("a", number), NOW_S + step)
        taken = reading.take(offset, 2, NOW_S + step).end
        for number in served:
            served[number] += taken["a"][str(number)] - offset["a"][str(number)]
        offset = taken
    assert min(served.values()) >= 5


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


def test_time_in_which_brokers_did_not_answer_does_not_count_as_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, cluster, start = Mock(return_value=0.0), filled(), {"a": {"0": 10, "1": 0}}
    monkeypatch.setattr("time.monotonic", clock)
    reading = feed(cluster)
    assert reading.pending(start, NOW_S).empty
    stamps = cluster.stamps.pop(A1)

    def late() -> set[Partition]:
        clock.return_value = 60.0
        return set(cluster.stamps)

    monkeypatch.setattr(cluster, "partitions", late)
    assert reading.pending(start, NOW_S + 5).empty  # they restart, and answer a minute later
    assert reading.pending(start, NOW_S + 5 + 60 + 1).empty
    cluster.stamps[A1] = stamps
    assert reading.pending(start, NOW_S + 5 + 60 + 4).empty


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


def test_a_frozen_feed_waits_for_brokers_that_have_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, start = filled(), {"a": {"0": 4, "1": 0}}
    stamps = cluster.stamps.pop(A0)
    reading = feed(cluster)
    reading.freeze(NOW_S)
    monkeypatch.setattr("time.sleep", lambda _: cluster.stamps.setdefault(A0, stamps))
    assert reading.pending(start, NOW_S).rows == 6
    assert reading.take(start, None, NOW_S).end == {"a": {"0": 10, "1": 0}}


def test_a_frozen_feed_tells_what_is_gone_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Mock(return_value=0.0)
    monkeypatch.setattr("time.monotonic", clock)
    sleep = Mock(side_effect=lambda seconds: clock.configure_mock(return_value=clock() + seconds))
    monkeypatch.setattr("time.sleep", sleep)
    for option, start in (("true", {"a": {"0": 4}, "b": {"0": 1}}), ("false", {"a": {"0": 4}, "b": {"0": 1}})):
        reading, begun_s = feed(filled(), failOnDataLoss=option), clock()
        reading.freeze(NOW_S)
        if option == "true":
            with pytest.raises(DataLost, match="b-0 is gone"):
                reading.pending(start, NOW_S)
        else:
            assert reading.pending(start, NOW_S).rows == 6
            assert reading.take(start, None, NOW_S).end == {"a": {"0": 10, "1": 0}}
        assert clock() - begun_s == GONE_AFTER_S  # once


def test_a_frozen_feed_may_stand_in_an_open_transaction() -> None:
    cluster, start = filled(), {"a": {"0": 10, "1": 0}}
    cluster.stable[A0] = 7
    reading = feed(cluster, **{"kafka.isolation.level": "read_committed"})
    reading.freeze(NOW_S)
    assert reading.pending(start, NOW_S).empty
    assert reading.take(start, None, NOW_S).end == start


def test_large_batches_are_cut_into_equal_tasks() -> None:
    reading = feed(MemoryCluster(a=2))
    [one] = reading.ranges({"a": {"0": 0, "1": 0}}, {"a": {"0": 900, "1": 20}}, 2)
    assert one["slices"] == [["a", 0, 0, 900], ["a", 1, 0, 20]]
    shares = reading.ranges({"a": {"0": 0, "1": 0}}, {"a": {"0": 90_000, "1": 10_000}}, 2)
    assert [share["slices"] for share in shares] == [
        [["a", 0, 0, 50_000]],
        [["a", 0, 50_000, 90_000], ["a", 1, 0, 10_000]],
    ]


def test_tasks_follow_the_work_of_a_row_once_it_is_known() -> None:
    reading, start, end = feed(MemoryCluster(a=1)), {"a": {"0": 0}}, {"a": {"0": 20_000}}
    assert len(reading.ranges(start, end, 8)) == 1
    assert len(reading.ranges(start, end, 8, row_work_s=1e-3)) == 8
    assert len(reading.ranges(start, end, 8, row_work_s=16e-6)) == 3


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
