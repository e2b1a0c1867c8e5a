"""One Spark for all tests of this folder; a fresh Headgate for each test."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import DataStreamWriter

from headgate import Headgate, session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    made = session("headgate-tests", master="local[2]", conf={"spark.ui.enabled": "false"})
    yield made
    made.stop()


@pytest.fixture
def hg(spark: SparkSession, tmp_path: Path) -> Iterator[Headgate]:
    made = Headgate(spark, records=tmp_path / "batches.jsonl")
    yield made
    made.stop()


class Collected:
    """Rows that a query's ``foreachBatch`` has seen, keyed by batch: a batch that is run again replaces itself."""

    def __init__(self) -> None:
        self.batches: dict[int, list[tuple[Any, ...]]] = {}

    def __call__(self, df: DataFrame, batch_id: int) -> None:
        self.batches[batch_id] = [tuple(row) for row in df.collect()]

    @property
    def rows(self) -> list[tuple[Any, ...]]:
        return [row for _, rows in sorted(self.batches.items()) for row in rows]


@pytest.fixture
def collected() -> Collected:
    return Collected()


def until(condition: Callable[[], object], seconds: float = 60.0) -> None:
    """Wait for something that another process does; fail if it does not come."""
    give_up_s = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < give_up_s, f"not within {seconds:g} s"
        time.sleep(0.02)


def counter(hg: Headgate, rate: str = "1000", **options: object) -> DataFrame:
    """A trace of numbered records."""
    reader = hg.readStream.format("headgate-trace").option("workload", "counter").option("rate", rate)
    for name, value in options.items():
        reader = reader.option(name, str(value))
    return reader.load()


def named(df: DataFrame, name: str, sink: Collected | None = None) -> DataStreamWriter:
    writer = df.writeStream.queryName(name)
    return writer.format("noop") if sink is None else writer.foreachBatch(sink)
