"""Backups of real checkpoints: whatever the state store, the operators and the source, a query resumes exactly."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming import DataStreamWriter, StreamingQuery

from headgate import Backup, BadParameter, Headgate
from headgate.state.folder import LocalFolder
from headgate.state.protection import BackupStatus
from headgate.state.saving import Saver
from tests.spark.conftest import until

pytestmark = pytest.mark.spark

FILES, ROWS, KEYS = 10, 60, 25
SCHEMA = "k long, v long, t timestamp"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
HDFS = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
STATE = "spark.sql.streaming.stateStore"
COMMON = {f"{STATE}.minDeltasForSnapshot": "3", f"{STATE}.maintenanceInterval": "1s"}
STORES = {
    "hdfs": {f"{STATE}.providerClass": HDFS},
    "rocksdb": {
        f"{STATE}.providerClass": ROCKSDB,
        f"{STATE}.rocksdb.changelogCheckpointing.enabled": "false",
    },
    "changelog": {
        f"{STATE}.providerClass": ROCKSDB,
        f"{STATE}.rocksdb.changelogCheckpointing.enabled": "true",
    },
    "format-2": {
        f"{STATE}.providerClass": ROCKSDB,
        f"{STATE}.rocksdb.changelogCheckpointing.enabled": "true",
        f"{STATE}.checkpointFormatVersion": "2",
    },
}


@contextmanager
def settings(spark: SparkSession, conf: dict[str, str]) -> Iterator[None]:
    before = {name: spark.conf.get(name, None) for name in conf}
    try:
        for name, value in conf.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, old in before.items():
            spark.conf.unset(name) if old is None else spark.conf.set(name, old)


class Sink:
    """Keeps batches by their number, as an idempotent sink does, and can be taken back to one."""

    def __init__(self) -> None:
        self.batches: dict[int, list[tuple[Any, ...]]] = {}

    def __call__(self, df: DataFrame, batch_id: int) -> None:
        self.batches[batch_id] = [tuple(row) for row in df.collect()]

    def back_to(self, batch: int) -> None:
        self.batches = {number: rows for number, rows in self.batches.items() if number <= batch}

    def newest_by_key(self) -> dict[Any, tuple[Any, ...]]:
        return {row[0]: row for _, rows in sorted(self.batches.items()) for row in rows}

    def all_rows(self) -> list[tuple[Any, ...]]:
        return sorted(row for rows in self.batches.values() for row in rows)


def write_file(folder: Path, number: int) -> None:
    rows = [
        {
            "k": (number * 7 + row) % KEYS,
            "v": number * ROWS + row,
            "t": f"2026-01-01 00:{number // 60:02d}:{number % 60:02d}",
        }
        for row in range(ROWS)
    ]
    hidden = folder / f".{number:03d}.json"
    hidden.write_text("\n".join(json.dumps(row) for row in rows) + "\n")
    os.rename(hidden, folder / f"{number:03d}.json")


def source(spark: SparkSession, folder: Path) -> DataFrame:
    return spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(folder))


def grouped(df: DataFrame) -> DataStreamWriter:
    return df.groupBy("k").agg(F.count("*"), F.sum("v")).writeStream.outputMode("update")


def several_operators(df: DataFrame) -> DataStreamWriter:
    marked = df.withWatermark("t", "1 hour")
    return marked.dropDuplicates(["v", "t"]).groupBy("k").agg(F.count("*"), F.sum("v")).writeStream.outputMode("update")


def joined(df: DataFrame) -> DataStreamWriter:
    left = df.withWatermark("t", "1 hour")
    right = df.select(F.col("k").alias("k2"), F.col("v").alias("v2"), F.col("t").alias("t2")).withWatermark(
        "t2", "1 hour"
    )
    near = F.expr("k = k2 AND v2 = v + 53 AND t2 >= t AND t2 <= t + INTERVAL 10 SECONDS")
    return left.join(right, near).select("k", "v", "v2").writeStream.outputMode("append")


def run_with_backups(
    spark: SparkSession,
    tmp_path: Path,
    make: Callable[[DataFrame], DataStreamWriter],
    sink: Sink,
    load: Callable[[], DataFrame] | None = None,
) -> int:
    """Run while files come in and backups are taken, lose the checkpoint and three places, restore, run to the end.

    Returns the batch it went back to.
    """  # fmt: skip
    folder = tmp_path / "in"
    folder.mkdir()
    settings_ = Backup([str(tmp_path / f"place-{number}") for number in range(10)], key="a secret key")
    saver = settings_.saver("query")
    first = tmp_path / "checkpoint"

    def start(checkpoint: Path) -> StreamingQuery:
        df = source(spark, folder) if load is None else load()
        return make(df).foreachBatch(sink).option("checkpointLocation", str(checkpoint)).start()

    query = start(first)
    try:
        backups = _feed_and_save(folder, range(FILES // 2), saver, first, sink)
        assert backups >= 2
        _feed_and_save(folder, range(FILES // 2, FILES), saver, first, sink, save=False)
    finally:
        query.stop()
    first.rename(tmp_path / "lost")  # deleting it file by file would race with Spark's maintenance of state
    for number in (1, 4, 8):
        shutil.rmtree(tmp_path / f"place-{number}")
    manifest = settings_.restore("query", str(tmp_path / "restored"))
    sink.back_to(manifest.batch)
    query = start(tmp_path / "restored")
    try:
        query.processAllAvailable()
    finally:
        query.stop()
    return manifest.batch


def _feed_and_save(
    folder: Path, numbers: range, saver: Saver, checkpoint: Path, sink: Sink, *, save: bool = True
) -> int:
    """Files come one after the other; backups are taken as fast as they go, mostly in mid-batch."""
    backups = 0
    for number in numbers:
        before = len(sink.batches)
        write_file(folder, number)
        give_up_s = time.monotonic() + 60
        while len(sink.batches) == before:
            if save and checkpoint.is_dir():
                backups += saver.save(LocalFolder(checkpoint)) is not None
            assert time.monotonic() < give_up_s
            time.sleep(0.01)
    return backups


def expected_groups() -> dict[int, tuple[int, int, int]]:
    rows = [((number * 7 + row) % KEYS, number * ROWS + row) for number in range(FILES) for row in range(ROWS)]
    keys = {key for key, _ in rows}
    return {key: (key, sum(k == key for k, _ in rows), sum(v for k, v in rows if k == key)) for key in keys}


@pytest.mark.parametrize("store", STORES)
def test_every_state_store(spark: SparkSession, tmp_path: Path, store: str) -> None:
    sink = Sink()
    with settings(spark, COMMON | STORES[store]):
        went_back_to = run_with_backups(spark, tmp_path, grouped, sink)
    assert went_back_to < max(sink.batches)
    assert sink.newest_by_key() == expected_groups()


@pytest.mark.parametrize("store", ["hdfs", "format-2"])
def test_several_operators(spark: SparkSession, tmp_path: Path, store: str) -> None:
    sink = Sink()
    with settings(spark, COMMON | STORES[store]):
        run_with_backups(spark, tmp_path, several_operators, sink)
    assert sink.newest_by_key() == expected_groups()


@pytest.mark.parametrize("store", ["hdfs", "changelog"])
def test_stream_stream_joins(spark: SparkSession, tmp_path: Path, store: str) -> None:
    sink = Sink()
    with settings(spark, COMMON | STORES[store]):
        run_with_backups(spark, tmp_path, joined, sink)
    rows = {number * ROWS + row: ((number * 7 + row) % KEYS, number) for number in range(FILES) for row in range(ROWS)}
    pairs = sorted(
        (key, value, value + 53)
        for value, (key, number) in rows.items()
        if (other := rows.get(value + 53)) is not None and other[0] == key and 0 <= other[1] - number <= 10
    )
    assert pairs
    assert sink.all_rows() == pairs


def test_arbitrary_state(spark: SparkSession, tmp_path: Path) -> None:
    from pyspark.sql.streaming import StatefulProcessor
    from pyspark.sql.types import Row

    class Totals(StatefulProcessor):
        def init(self, handle: Any) -> None:
            self.total = handle.getValueState("total", "count long, sum long")
            self.seen = handle.getListState("seen", "v long")

        def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Row]:  # noqa: N803
            count, total = self.total.get() if self.total.exists() else (0, 0)
            for row in rows:
                count, total = count + 1, total + row.v
                self.seen.appendValue((row.v,))
            self.total.update((count, total))
            assert sum(1 for _ in self.seen.get()) == count
            yield Row(k=key[0], n=count, s=total)

        def close(self) -> None: ...

    def make(df: DataFrame) -> DataStreamWriter:
        out = df.groupBy("k").transformWithState(Totals(), "k long, n long, s long", "Update", "None")
        return out.writeStream.outputMode("update")

    sink = Sink()
    with settings(spark, COMMON | STORES["changelog"]):
        run_with_backups(spark, tmp_path, make, sink)
    assert sink.newest_by_key() == expected_groups()


def test_one_line_of_the_api_protects_a_query(spark: SparkSession, tmp_path: Path) -> None:
    """With Headgate's own files source, whose log lies in the checkpoint too."""
    folder, sink = tmp_path / "in", Sink()
    folder.mkdir()
    places = [str(tmp_path / f"place-{number}") for number in range(5)]
    backup = Backup(places, raw=3, check=2, every=0.2)

    def start(hg: Headgate, checkpoint: Path, **more: Any) -> Any:
        df = hg.readStream.format("headgate-files").schema(SCHEMA).option("path", str(folder))
        writer = grouped(df.option("fileFormat", "json").load()).queryName("totals").foreachBatch(sink)
        return hg.start(writer.option("checkpointLocation", str(checkpoint)), deadline="1s", **more)

    with Headgate(spark, records=tmp_path / "batches.jsonl") as hg:
        query = start(hg, tmp_path / "checkpoint", backup=backup)
        for number in range(6):
            write_file(folder, number)
            until(lambda n=number: sum(len(r) for r in sink.batches.values()) > 0 and len(sink.batches) > n)  # type: ignore[misc]
        until(lambda: query.backup.backups >= 2)
        assert query.backup.failures == 0
    saved = query.backup
    assert saved.batch is not None and saved.state_bytes > 0
    (tmp_path / "checkpoint").rename(tmp_path / "lost")
    for number in range(6, FILES):
        write_file(folder, number)
    for number in (0, 3):
        shutil.rmtree(places[number])
    manifest = backup.restore("totals", str(tmp_path / "restored"))
    assert manifest.batch == saved.batch  # the last backup is made when the query ends
    sink.back_to(manifest.batch)
    with Headgate(spark, records=tmp_path / "batches.jsonl") as hg:
        start(hg, tmp_path / "restored")
        until(lambda: sum(row[1] for row in sink.newest_by_key().values()) >= FILES * ROWS)
    assert sink.newest_by_key() == expected_groups()


def test_backups_that_fail_do_not_stop_the_query(spark: SparkSession, tmp_path: Path) -> None:
    blocked = tmp_path / "no-folder"
    blocked.write_text("a file where a folder should be")
    backup = Backup([f"{blocked}/{number}" for number in range(3)], raw=2, check=1, every=0.1)
    with Headgate(spark, records=tmp_path / "batches.jsonl") as hg:
        df = hg.gate(spark.readStream.format("rate").option("rowsPerSecond", 100).load())
        writer = (
            df.groupBy((F.col("value") % 3).alias("k")).count().writeStream.outputMode("update").queryName("goes-on")
        )
        query = hg.start(writer.format("noop"), deadline="1s", backup=backup)
        backups = lambda: query.backup or BackupStatus()  # noqa: E731
        until(lambda: backups().failures >= 2 and query.summary is not None and query.summary.batches >= 3)
        assert query.isActive
        assert "places answer" in str(backups().problem)


def test_what_is_wrong_with_the_places_is_said_before_the_query_starts(spark: SparkSession, tmp_path: Path) -> None:
    with Headgate(spark, records=tmp_path / "batches.jsonl") as hg:
        df = hg.gate(spark.readStream.format("rate").load())
        with pytest.raises(BadParameter, match="shared key"):
            named = df.writeStream.format("noop").queryName("named")
            hg.start(named, deadline="1s", backup=Backup(["http://localhost:1"]))
        with pytest.raises(BadParameter, match="name of its query"):
            hg.start(df.writeStream.format("noop"), deadline="1s", backup=Backup([str(tmp_path / "place")]))
        assert not hg.queries
