"""Headgate's Kafka and file sources against Spark's own: throughput, and what a small batch costs.

Both are read by the same Spark into a sink that throws everything away, through ``trigger(availableNow=True)`` for
throughput and trigger 0 for small batches; neither has a gate, so that the sources alone are compared.
"""

from __future__ import annotations

import json
import os
import random
import statistics
import string
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headgate.bench.race import Race, Say
from headgate.engine.session import session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

WARM_UPS = 2
SMALL_S = 20.0
"""How long small batches are watched each turn."""

SMALL_ROWS_S = 500

SPARKS = "Spark's own source"

FILE_SCHEMA = "id bigint, at timestamp, name string, score double, place struct<lane: int, segment: int>"


def kafka(records: int, record_bytes: int, partitions: int, turns: int, say: Say) -> list[dict[str, Any]]:
    """The same topic through both sources."""
    from headgate.bench.kafka.broker import LocalBroker
    from headgate.bench.kafka.jars import connector_jars

    with (
        tempfile.TemporaryDirectory(prefix="headgate-kafka-", ignore_cleanup_errors=True) as folder,
        LocalBroker(folder) as broker,
        _spark({"spark.jars": ",".join(map(str, connector_jars()))}) as spark,
    ):
        _fill(broker.address, "records", partitions, records, record_bytes, say)

        def read(source: str, topic: str, starting: str) -> DataFrame:
            reader = spark.readStream.format(source).option("kafka.bootstrap.servers", broker.address)
            reader = reader.option("stateLocation", tempfile.mkdtemp(dir=folder))  # of no meaning to Spark's
            return reader.option("subscribe", topic).option("startingOffsets", starting).load()

        whole = Race(f"{records:,} records of {record_bytes} bytes from {partitions} partitions", "records/s", SPARKS)
        whole.run(
            lambda: records / _drained_s(read("headgate-kafka", "records", "earliest")),
            lambda: records / _drained_s(read("kafka", "records", "earliest")),
            turns, WARM_UPS, say,
        )  # fmt: skip
        with _trickle(broker.address, "trickle", partitions):
            small = Race(f"batch time at {SMALL_ROWS_S} records/s", "ms", SPARKS)
            small.run(
                lambda: _batch_ms(read("headgate-kafka", "trickle", "latest")),
                lambda: _batch_ms(read("kafka", "trickle", "latest")),
                turns, WARM_UPS, say,
            )  # fmt: skip
    return [whole.to_json(), small.to_json()]


def files(rows: int, file_count: int, turns: int, say: Say) -> list[dict[str, Any]]:
    """The same folders, JSON and Parquet, through both sources."""
    results = []
    with (
        tempfile.TemporaryDirectory(prefix="headgate-files-", ignore_cleanup_errors=True) as folder,
        _spark({}) as spark,
    ):
        for file_format in ("json", "parquet"):
            path = f"{folder}/{file_format}"
            say(f"writing {rows:,} rows as {file_format}")
            _write_files(spark, path, file_format, rows, file_count)
            race = Race(f"{rows:,} rows in {file_count} {file_format} files", "rows/s", SPARKS)
            race.run(
                partial(_files_per_s, rows, partial(_files_of_ours, spark, path, file_format)),
                partial(_files_per_s, rows, partial(_files_of_sparks, spark, path, file_format)),
                turns, WARM_UPS, say,
            )  # fmt: skip
            results.append(race.to_json())
    return results


def listing(file_count: int, turns: int, say: Say) -> dict[str, Any]:
    """How long a look at a folder of many files takes, with few new ones since the look before."""
    from headgate.sources.files.feed import FilesFeed
    from headgate.sources.files.log import FileLog

    with tempfile.TemporaryDirectory(prefix="headgate-listing-", ignore_cleanup_errors=True) as folder:
        inbox = Path(folder) / "in"
        inbox.mkdir()
        say(f"making {file_count:,} files")
        for number in range(file_count):
            (inbox / f"{number:08}.txt").write_bytes(b"x\n")
        feed = FilesFeed({"path": str(inbox), "fileFormat": "text"}, FileLog(f"{folder}/log"))
        begun_s = time.perf_counter()
        now_s = time.time()
        end = feed.take(feed.initial(now_s), None, now_s).end
        first_s = time.perf_counter() - begun_s
        looks = []
        for turn in range(turns):
            (inbox / f"new-{turn}.txt").write_bytes(b"x\n")
            now_s += 1000.0  # as if the rest between two looks had passed
            begun_s = time.perf_counter()
            pending = feed.pending(end, now_s)
            looks.append(time.perf_counter() - begun_s)
            assert pending.rows == turn + 1
    return {"files": file_count, "first_look_s": first_s, "looks_s": looks, "look_s": statistics.median(looks)}


@contextmanager
def _spark(conf: dict[str, str]) -> Iterator[SparkSession]:
    from headgate.sources.files.source import FilesSource
    from headgate.sources.kafka.source import KafkaSource

    os.environ.setdefault("HEADGATE_SPARK_LOG", "OFF")  # stopping a query in mid-batch makes Spark complain
    spark = session("headgate-sources", conf=conf)
    for source in (FilesSource, KafkaSource):
        spark.dataSource.register(source)
    try:
        yield spark
    finally:
        spark.stop()


def _drained_s(df: DataFrame) -> float:
    """Seconds to read all that is there."""
    with _checkpoint() as folder:
        begun_s = time.perf_counter()
        writer = df.writeStream.format("noop").option("checkpointLocation", folder).trigger(availableNow=True)
        writer.start().awaitTermination()
        return time.perf_counter() - begun_s


def _batch_ms(df: DataFrame) -> float:
    """The median time of small batches."""
    with _checkpoint() as folder:
        query = df.writeStream.format("noop").option("checkpointLocation", folder).start()
        time.sleep(SMALL_S)
        progress = [each for each in query.recentProgress if each.numInputRows > 0]
        query.stop()
    return float(statistics.median(each.durationMs["triggerExecution"] for each in progress[len(progress) // 3 :]))


def _checkpoint() -> Any:
    return tempfile.TemporaryDirectory(prefix="headgate-checkpoint-", ignore_cleanup_errors=True)


def _files_per_s(rows: int, read: Callable[[], DataFrame]) -> float:
    return rows / _drained_s(read())


def _files_of_sparks(spark: SparkSession, path: str, file_format: str) -> DataFrame:
    return spark.readStream.format(file_format).schema(FILE_SCHEMA).load(path)


def _files_of_ours(spark: SparkSession, path: str, file_format: str) -> DataFrame:
    state = tempfile.mkdtemp(prefix="headgate-state-", dir=os.path.dirname(path))
    reader = spark.readStream.format("headgate-files").option("fileFormat", file_format).option("stateLocation", state)
    return reader.schema(FILE_SCHEMA).load(path)


def _write_files(spark: SparkSession, path: str, file_format: str, rows: int, file_count: int) -> None:
    df = spark.range(rows).selectExpr(
        "id", "timestamp_millis(1700000000000 + id) as at", "concat('name-', id % 1000) as name", "id * 0.5D as score",
        "struct(cast(id % 5 as int) as lane, cast(id % 100 as int) as segment) as place",
    )  # fmt: skip
    df.repartition(file_count).write.format(file_format).save(path)


def _fill(address: str, topic: str, partitions: int, records: int, record_bytes: int, say: Say) -> None:
    from confluent_kafka import Producer

    _create(address, topic, partitions)
    letters = "".join(random.Random(1).choices(string.ascii_letters, k=2 * record_bytes)).encode()
    values = [letters[start : start + record_bytes] for start in range(record_bytes)]
    producer = Producer({"bootstrap.servers": address, "linger.ms": 50, "queue.buffering.max.messages": 1_000_000})
    for number in range(records):
        while True:
            try:
                producer.produce(
                    topic, values[number % record_bytes], str(number).encode(), partition=number % partitions
                )
                break
            except BufferError:
                producer.poll(0.1)
        if number % 1_000_000 == 0:
            say(f"producing: {number:,} of {records:,}")
    producer.flush()


def _create(address: str, topic: str, partitions: int) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": address})  # must outlive the answer
    for answer in admin.create_topics([NewTopic(topic, partitions, 1)]).values():
        answer.result()


@contextmanager
def _trickle(address: str, topic: str, partitions: int) -> Iterator[None]:
    """A steady few records per second."""
    from confluent_kafka import Producer

    _create(address, topic, partitions)
    producer, ended = Producer({"bootstrap.servers": address, "linger.ms": 5}), threading.Event()

    def produce() -> None:
        number = 0
        while not ended.wait(0.02):
            for _ in range(SMALL_ROWS_S // 50):
                producer.produce(topic, json.dumps({"number": number}), partition=number % partitions)
                number += 1
            producer.poll(0)

    thread = threading.Thread(target=produce, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
