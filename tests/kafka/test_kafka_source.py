"""The Kafka source on a real broker: the same rows as Spark's own, whatever a topic has been through."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import udf
from pyspark.sql.streaming import DataStreamWriter

from headgate import Headgate
from headgate.sources.kafka.config import KafkaConfig
from headgate.sources.kafka.feed import GONE_AFTER_S
from headgate.sources.kafka.positions import Partition
from headgate.sources.kafka.sizes import SAMPLE_ROWS, Sampler
from tests.kafka.conftest import MakeTopic, Topic, read, read_with_spark
from tests.spark.conftest import Collected, named, until
from tests.spark.test_failing_open import Gates

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


def drained(writer: DataStreamWriter, sink: Collected) -> list[tuple[Any, ...]]:
    """What Spark's own source gives, with its own trigger."""
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination(60)
    return sink.rows


def gated(
    hg: Headgate,
    df: DataFrame,
    name: str = "gated",
    deadline: str = "2s",
    sink: Collected | None = None,
    **options: str,
) -> tuple[Any, Collected]:
    sink = sink or Collected()
    writer = named(df, name, sink)
    for key, value in options.items():
        writer = writer.option(key, value)
    return hg.start(writer, deadline=deadline), sink


def values_of(sink: Collected, column: int = 1) -> list[str]:
    return sorted(bytes(row[column]).decode() for row in sink.rows)


def test_rows_and_schema_are_those_of_sparks_own_source(hg: Headgate, spark: SparkSession, topic: MakeTopic) -> None:
    made = topic(3)
    made.produce(range(500), headers=[("source", b"test"), ("empty", None)])
    made.produce([None, "", "x"], partition=1)
    ours, theirs = read(hg, made, includeHeaders=True), read_with_spark(spark, made, includeHeaders=True)
    assert [(f.name, f.dataType) for f in ours.schema] == [(f.name, f.dataType) for f in theirs.schema]
    query, sink = gated(hg, ours)
    until(lambda: len(sink.rows) == 503)
    query.stop()
    spark_sink = Collected()
    assert sorted(sink.rows, key=str) == sorted(drained(named(theirs, "stock", spark_sink), spark_sink), key=str)


def test_a_deadline_is_kept_and_arrivals_are_known(hg: Headgate, topic: MakeTopic) -> None:
    made = topic(2)
    query, sink = gated(hg, read(hg, made), deadline="3s")
    for _ in range(8):
        made.produce(range(200))
        time.sleep(0.4)
    until(lambda: len(sink.rows) == 1600)
    until(lambda: query.summary is not None and query.summary.datasets == 1600)
    assert not query.summary.estimated
    assert 0 < query.summary.quantile_s(0.5) < 15.0  # a cold JVM may need longer than the deadline
    assert query.summary.batches < 16  # it waits for company, within the deadline


def test_available_now_ends_with_what_was_there(hg: Headgate, topic: MakeTopic) -> None:
    made, sink = topic(2), Collected()
    made.produce(range(300))
    writer = named(read(hg, made, maxOffsetsPerTrigger=90), "now", sink).trigger(availableNow=True)
    query = hg.start(writer, deadline="5s")
    assert query.awaitTermination(60)
    assert values_of(sink) == sorted(map(str, range(300)))
    assert len(sink.batches) >= 4  # the user's own limit still holds


def test_positions_survive_a_restart(hg: Headgate, topic: MakeTopic, tmp_path: Path) -> None:
    made, sink = topic(2), Collected()
    for turn in (1, 2, 3):
        made.produce(range(100 * turn - 100, 100 * turn))
        query, _ = gated(hg, read(hg, made), sink=sink, checkpointLocation=str(tmp_path / "checkpoint"))
        until(lambda turn=turn: len(sink.rows) == 100 * turn)  # type: ignore[misc]
        query.stop()
    assert values_of(sink) == sorted(map(str, range(300)))


def test_latest_begins_when_the_query_was_first_started(hg: Headgate, topic: MakeTopic, tmp_path: Path) -> None:
    """Also if it was stopped before its first batch: what came meanwhile is not lost."""
    made = topic(1)
    made.produce(["before"])
    df = read(hg, made, startingOffsets="latest")
    query, _ = gated(hg, df, checkpointLocation=str(tmp_path / "checkpoint"))
    until(lambda: list((tmp_path / "checkpoint").rglob("kafka-*.json")))
    query.stop()
    for torn in (tmp_path / "checkpoint/offsets").glob(".*.tmp"):
        torn.unlink()  # left by Spark if it was just writing its first offsets, and it refuses such a checkpoint
    made.produce(["meanwhile"])
    query, sink = gated(hg, df, checkpointLocation=str(tmp_path / "checkpoint"))
    until(lambda: len(sink.rows) == 1)
    query.stop()
    assert values_of(sink) == ["meanwhile"]


def test_a_new_checkpoint_begins_anew_where_the_first_positions_are_kept_elsewhere(
    hg: Headgate, topic: MakeTopic, tmp_path: Path
) -> None:
    """With `stateLocation` they are not in the checkpoint, and must not outlive the moment they are for."""
    made, state = topic(1), tmp_path / "state"
    df = read(hg, made, startingOffsets="latest", stateLocation=state)
    query, sink = gated(hg, df, checkpointLocation=str(tmp_path / "first"))
    until(lambda: list(state.glob("kafka-*.json")))
    until(lambda: (tmp_path / "first/commits/0").exists())
    assert list(state.glob("kafka-*.json"))  # Spark would still ask, if it had to run its first batch again
    made.produce(["to the first"])
    until(lambda: values_of(sink) == ["to the first"])
    assert not list(state.glob("kafka-*.json"))
    query.stop()
    made.produce(["to nobody"])
    query, _ = gated(hg, df, name="second", sink=(sink := Collected()), checkpointLocation=str(tmp_path / "second"))
    until(lambda: (tmp_path / "second/commits/0").exists())
    made.produce(["to the second"])
    until(lambda: sink.rows)
    query.stop()
    assert values_of(sink) == ["to the second"]


def test_a_first_batch_that_is_run_again_begins_where_it_did(hg: Headgate, topic: MakeTopic, tmp_path: Path) -> None:
    """Spark asks where only for that one: without its mark in the log it is not done, as after a kill."""
    made, checkpoint, state = topic(1), tmp_path / "checkpoint", tmp_path / "state"
    df = read(hg, made, startingOffsets="latest", stateLocation=state)
    query, sink = gated(hg, df, checkpointLocation=str(checkpoint))
    until(lambda: (checkpoint / "commits/0").exists())
    query.stop()
    made.produce(["meanwhile"])
    for mark in (checkpoint / "commits").glob("*0*"):
        mark.unlink()
    query, _ = gated(hg, df, sink=sink, checkpointLocation=str(checkpoint))
    until(lambda: values_of(sink) == ["meanwhile"])
    until(lambda: not list(state.glob("kafka-*.json")))
    query.stop()


@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
def test_transactions(hg: Headgate, topic: MakeTopic, isolation: str) -> None:
    """Aborted records, and the markers that end transactions, leave gaps in the offsets."""
    made = topic(1)
    producer = made.producer(**{"transactional.id": f"{made.name}-producer"})
    producer.init_transactions(30)
    for turn, ends in enumerate(("commit", "abort", "commit", "abort")):
        producer.begin_transaction()
        for number in range(50):
            producer.produce(made.name, value=f"{turn}-{number}", partition=0)
        producer.flush(30)
        producer.commit_transaction(30) if ends == "commit" else producer.abort_transaction(30)
    query, sink = gated(hg, read(hg, made, **{"kafka.isolation.level": isolation}))
    turns = (0, 2) if isolation == "read_committed" else (0, 1, 2, 3)
    wanted = sorted(f"{turn}-{number}" for turn in turns for number in range(50))
    until(lambda: len(sink.rows) >= len(wanted))
    made.produce(["end"], partition=0)
    until(lambda: "end" in values_of(sink))
    query.stop()
    assert values_of(sink) == sorted([*wanted, "end"])


def test_an_open_transaction_is_not_read_before_its_end(hg: Headgate, topic: MakeTopic) -> None:
    made = topic(1)
    producer = made.producer(**{"transactional.id": f"{made.name}-producer"})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(made.name, value="late", partition=0)
    producer.flush(30)
    query, sink = gated(hg, read(hg, made, **{"kafka.isolation.level": "read_committed"}), deadline="1s")
    time.sleep(3)
    assert not sink.rows
    producer.commit_transaction(30)
    until(lambda: values_of(sink) == ["late"])
    query.stop()


def test_a_compacted_topic(hg: Headgate, topic: MakeTopic) -> None:
    """Only the last record of each key remains, with gaps of any size before it."""
    made = topic(1, **{"cleanup.policy": "compact", "segment.ms": "100", "min.cleanable.dirty.ratio": "0.01",
                       "max.compaction.lag.ms": "100"})  # fmt: skip
    producer = made.producer()
    for turn in range(20):
        for key in range(5):
            producer.produce(made.name, key=str(key), value=f"{turn}-{key}", partition=0)
        producer.flush(30)
        time.sleep(0.15)
    time.sleep(3)
    query, sink = gated(hg, read(hg, made))
    until(lambda: any(row[4] == 99 for row in sink.rows))
    query.stop()
    offsets = [row[4] for row in sink.rows]
    assert len(offsets) < 100 and len(set(offsets)) == len(offsets)  # it was compacted, and nothing came twice
    assert {f"19-{key}" for key in range(5)} <= set(values_of(sink))


def test_partitions_added_at_run_time(hg: Headgate, topic: MakeTopic) -> None:
    made = topic(1)
    query, sink = gated(hg, read(hg, made))
    made.produce(["a"], partition=0)
    until(lambda: len(sink.rows) == 1)
    made.add_partitions(3)
    made.produce(["b"], partition=1)
    made.produce(["c"], partition=2)
    until(lambda: values_of(sink) == ["a", "b", "c"])
    query.stop()


def test_topics_by_pattern_also_new_ones(hg: Headgate, topic: MakeTopic) -> None:
    first = topic(1, name="pattern.one")
    reader = hg.readStream.format("headgate-kafka").option("kafka.bootstrap.servers", first.broker.address)
    df = reader.option("subscribePattern", "pattern[.].*").option("startingOffsets", "earliest").load()
    first.produce(["a"])
    query, sink = gated(hg, df)
    until(lambda: values_of(sink) == ["a"])
    topic(1, name="another-pattern.one").produce(["not this"])
    topic(1, name="pattern.two").produce(["b"])
    until(lambda: values_of(sink) == ["a", "b"])
    query.stop()


def test_assigned_partitions_only(hg: Headgate, topic: MakeTopic) -> None:
    made = topic(2)
    made.produce(["zero"], partition=0)
    made.produce(["one"], partition=1)
    reader = hg.readStream.format("headgate-kafka").option("kafka.bootstrap.servers", made.broker.address)
    df = reader.option("assign", f'{{"{made.name}": [1]}}').option("startingOffsets", "earliest").load()
    query, sink = gated(hg, df)
    until(lambda: values_of(sink) == ["one"])
    query.stop()


def failure_of(query: Any) -> str:
    until(lambda: not query.isActive, 90)
    return str(query.exception())


def test_a_deleted_topic_ends_the_query_with_a_clear_word(hg: Headgate, topic: MakeTopic) -> None:
    made = topic(1)
    made.produce(["a"])
    query, sink = gated(hg, read(hg, made), deadline="1s")
    until(lambda: values_of(sink) == ["a"])
    made.delete()
    told = failure_of(query)
    assert f"{made.name}-0 is gone" in told and "failOnDataLoss" in told


def test_a_deleted_topic_may_be_gone_without(hg: Headgate, topic: MakeTopic) -> None:
    kept, deleted = topic(1), topic(1)
    df = read(hg, kept, subscribe=f"{kept.name},{deleted.name}", failOnDataLoss=False)
    query, sink = gated(hg, df, deadline="1s")
    deleted.produce(["a"])
    until(lambda: values_of(sink) == ["a"])
    deleted.delete()
    time.sleep(GONE_AFTER_S + 1)
    kept.produce(["b"])
    until(lambda: values_of(sink) == ["a", "b"])
    query.stop()


def test_trimmed_records(hg: Headgate, topic: MakeTopic, tmp_path: Path) -> None:
    made = topic(1)
    made.produce(range(10), partition=0)
    query, sink = gated(hg, read(hg, made), checkpointLocation=str(tmp_path / "checkpoint"))
    until(lambda: (tmp_path / "checkpoint" / "commits" / "0").exists())
    query.stop()
    made.produce(range(10, 30), partition=0)
    made.trim(0, 25)
    failing, _ = gated(hg, read(hg, made), checkpointLocation=str(tmp_path / "checkpoint"))
    told = failure_of(failing)
    assert "begins at 25 now: 15 records were deleted" in told and "failOnDataLoss" in told
    going_on, sink = gated(hg, read(hg, made, failOnDataLoss=False), checkpointLocation=str(tmp_path / "checkpoint"))
    until(lambda: len(sink.rows) == 5)
    until(lambda: going_on.summary is not None and going_on.summary.skipped_rows == 15)
    assert values_of(sink) == [str(n) for n in range(25, 30)]


def test_a_topic_that_is_not_there(hg: Headgate, topic: MakeTopic) -> None:
    query, _ = gated(hg, read(hg, topic(1), subscribe="no-such-topic"))
    assert "no-such-topic" in failure_of(query)


def test_the_partitions_of_the_slowest_task_are_named(hg: Headgate, topic: MakeTopic) -> None:
    made = topic(2)
    for partition in (0, 1):
        made.produce(range(100), partition=partition)
    query, _ = gated(hg, read(hg, made, minPartitions=2))
    until(lambda: query.batches)
    first = query.batches[0]
    assert first.shares == (f"{made.name}-0[0:100]", f"{made.name}-1[0:100]")
    assert first.tasks is not None and first.tasks.count == 2
    assert first.tasks.slowest_read in first.shares


def test_heavy_rows_get_a_task_per_core_once_that_is_known(hg: Headgate, topic: MakeTopic) -> None:
    made = topic(1)
    made.produce(range(200))

    @udf("int")
    def heavy(value: bytes) -> int:
        time.sleep(0.005)
        return len(value)

    query, sink = gated(hg, read(hg, made).select(heavy("value").alias("size")))
    until(lambda: query.batches)
    made.produce(range(200))
    until(lambda: len(sink.rows) == 400 and len(query.batches) > 1)
    first, last = query.batches[0], query.batches[-1]
    assert len(first.shares) == 1 and len(last.shares) == 2
    assert last.tasks is not None and last.tasks.count == 2


def test_sizes_are_learnt_from_records_that_wait(topic: MakeTopic) -> None:
    made = topic(3)
    made.produce(["x" * 10] * 400, partition=0)  # as key and as value
    made.produce(["x" * 1_000] * 400, partition=1)
    config = KafkaConfig.parse({"kafka.bootstrap.servers": made.broker.address, "subscribe": made.name})
    sample, starts = Sampler(config), {Partition(made.name, number): 0 for number in range(3)}
    for _ in range(2):  # with one consumer
        found = sample(starts)
        assert {each.number: set(sizes) for each, sizes in found.items()} == {0: {20}, 1: {2_000}, 2: set()}
        assert all(len(sizes) <= SAMPLE_ROWS for sizes in found.values())
    assert sample({Partition(made.name, 0): 399}) == {Partition(made.name, 0): [20]}
    assert sample({Partition("there-is-no-such-topic", 0): 0}) == {Partition("there-is-no-such-topic", 0): []}


def test_in_bytes_the_largest_records_come_first(hg: Headgate, topic: MakeTopic) -> None:
    made, sink = topic(2), Collected()
    made.produce(["x"] * 300, partition=0)
    made.produce(["x" * 2_000] * 100, partition=1)
    df = read(hg, made, backlogUnit="bytes", maxOffsetsPerTrigger=90).select("partition")
    query = hg.start(named(df, "weighed", sink).trigger(availableNow=True), deadline="60s")  # so nothing is urgent
    assert query.awaitTermination(60)
    assert {row[0] for row in sink.batches[0]} == {1}
    assert sorted(row[0] for row in sink.rows) == [0] * 300 + [1] * 100


SECRET = "a-secret-for-tests"


def login(made: Topic, password: str = SECRET) -> dict[str, str]:
    line = f'org.apache.kafka.common.security.plain.PlainLoginModule required username="reader" password="{password}";'
    return {
        "kafka.bootstrap.servers": made.broker.login_address, "kafka.security.protocol": "SASL_PLAINTEXT",
        "kafka.sasl.mechanism": "PLAIN", "kafka.sasl.jaas.config": line,
    }  # fmt: skip


def test_credentials_work_and_are_never_shown(
    hg: Headgate, topic: MakeTopic, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    made = topic(1)
    made.produce(range(20))
    df = read(hg, made, **login(made))
    df.explain(True)
    query, sink = gated(hg, df, checkpointLocation=str(tmp_path / "checkpoint"))
    until(lambda: len(sink.rows) == 20)
    query.spark_query.explain(True)
    until(lambda: query.spark_query.lastProgress is not None)
    told = [str(query.spark_query.lastProgress), str(df), repr(hg.status()), (tmp_path / "batches.jsonl").read_text()]
    query.stop()
    told += [path.read_text(errors="replace") for path in (tmp_path / "checkpoint").rglob("*") if path.is_file()]
    out, err = capfd.readouterr()
    for text in (*told, out, err):
        assert SECRET not in text
    assert "Physical Plan" in out


def test_a_wrong_password_is_said_without_showing_it(hg: Headgate, topic: MakeTopic) -> None:
    made = topic(1)
    query, _ = gated(hg, read(hg, made, **login(made, "not-the-secret"), **{"kafkaConsumer.pollTimeoutMs": "3000"}))
    told = failure_of(query)
    assert "not-the-secret" not in told
    assert "uthenticat" in told


def test_the_broker_restarts(hg: Headgate, topic: MakeTopic) -> None:
    made = topic(2)
    query, sink = gated(hg, read(hg, made))
    made.produce(range(100))
    until(lambda: len(sink.rows) == 100)
    made.broker.stop()
    time.sleep(2)
    made.broker.start()
    made.produce(range(100, 200))
    until(lambda: len(sink.rows) == 200, 90)
    query.stop()
    assert values_of(sink) == sorted(map(str, range(200)))


def test_a_checkpoint_of_sparks_own_source_goes_on_here_and_back(
    hg: Headgate, spark: SparkSession, topic: MakeTopic, tmp_path: Path
) -> None:
    """Both write positions in the same form, so a query can change its source without losing its place."""
    made, checkpoint, sink = topic(2), str(tmp_path / "checkpoint"), Collected()
    for turn in (1, 2, 3, 4):
        made.produce(range(100 * turn - 100, 100 * turn))
        if turn % 2:
            writer = named(read_with_spark(spark, made), "moving", sink).option("checkpointLocation", checkpoint)
            drained(writer, sink)
        else:
            query, _ = gated(hg, read(hg, made), name="moving", sink=sink, checkpointLocation=checkpoint)
            until(lambda turn=turn: len(sink.rows) == 100 * turn)  # type: ignore[misc]
            query.stop()
    assert values_of(sink) == sorted(map(str, range(400)))


def test_a_killed_gate_process_loses_and_doubles_nothing(hg: Headgate, topic: MakeTopic) -> None:
    made, gates = topic(2), Gates()
    query, sink = gated(hg, read(hg, made))
    made.produce(range(300))
    until(lambda: len(sink.rows) == 300)
    (gate,) = gates.alive()
    gate.kill()
    made.produce(range(300, 600))
    until(lambda: len(sink.rows) == 600, 90)
    assert query.restarts == 1
    query.stop()
    assert values_of(sink) == sorted(map(str, range(600)))
