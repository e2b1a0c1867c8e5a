"""A query over Kafka is backed up, its checkpoint lost, restored, and nothing is read twice or left out."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from headgate import Backup, Headgate
from tests.kafka.conftest import MakeTopic, Topic, read, read_with_spark
from tests.spark.conftest import Collected, named, until

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


@pytest.mark.parametrize("source", ["headgate", "spark"])
def test_positions_come_back(hg: Headgate, spark: SparkSession, topic: MakeTopic, tmp_path: Path, source: str) -> None:
    made, sink = topic(2), Collected()
    backup = Backup([str(tmp_path / f"place-{number}") for number in range(4)], raw=2, check=2, every=0.2)

    def stream() -> DataFrame:
        return read(hg, made) if source == "headgate" else hg.gate(read_with_spark(spark, made))

    def start(checkpoint: Path, protected: Backup | None) -> object:
        writer = named(stream(), "copied", sink).option("checkpointLocation", str(checkpoint))
        return hg.start(writer, deadline="2s", backup=protected)

    query = start(tmp_path / "checkpoint", backup)
    _produce_and_await(made, range(300), sink)
    until(lambda: query.backup.backups >= 1)  # type: ignore[attr-defined]
    _produce_and_await(made, range(300, 600), sink)
    query.stop()  # type: ignore[attr-defined]
    until(lambda: not hg.queries)
    shutil.rmtree(tmp_path / "checkpoint", ignore_errors=True)
    for number in (0, 2):
        shutil.rmtree(tmp_path / f"place-{number}")
    manifest = backup.restore("copied", str(tmp_path / "restored"))
    sink.batches = {number: rows for number, rows in sink.batches.items() if number <= manifest.batch}
    start(tmp_path / "restored", None)
    _produce_and_await(made, range(600, 900), sink)
    assert sorted(int(bytes(row[1])) for row in sink.rows) == list(range(900))


def _produce_and_await(made: Topic, values: range, sink: Collected) -> None:
    made.produce(values)
    until(lambda: len(sink.rows) >= values.stop)
