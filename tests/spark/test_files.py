"""Files are read as Spark's own file source reads them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate import Headgate
from tests.spark.conftest import Collected, named

pytestmark = pytest.mark.spark

ZONE = "spark.sql.session.timeZone"
SCHEMA = "id long, name string, at timestamp"
LINES = rb"""
ID_NO,called,at
1,"say \"hi\", or C:\\",2026-07-01 12:00:00
2,"",2026-07-01T12:00:00Z

3,C:\temp,2026-01-01 12:00:00.5
,NA,
"""


@pytest.fixture
def berlin(spark: SparkSession) -> Iterator[None]:
    before = str(spark.conf.get(ZONE))
    spark.conf.set(ZONE, "Europe/Berlin")
    yield
    spark.conf.set(ZONE, before)


def read_once(hg: Headgate, folder: Path, sink: Collected, name: str, **options: str) -> list[tuple[object, ...]]:
    files = hg.readStream.format("headgate-files").option("fileFormat", "csv").options(**options).schema(SCHEMA)
    # As numbers: a collected timestamp would be in this process's own time zone.
    seconds = files.load(str(folder)).selectExpr("id", "name", "cast(at as double)")
    query = hg.start(named(seconds, name, sink).trigger(availableNow=True), deadline="5s")
    assert query.awaitTermination(60)
    return sorted(sink.rows, key=str)


@pytest.mark.usefixtures("berlin")
def test_csv_in_the_time_zone_of_the_session(hg: Headgate, collected: Collected, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.csv").write_bytes(LINES)
    (folder / "a.txt").write_bytes(b"not this one\n")
    options = {"header": "true", "pathGlobFilter": "*.csv", "mode": "FAILFAST"}
    spark = (
        hg.spark.read.options(**options).schema(SCHEMA).csv(str(folder)).selectExpr("id", "name", "cast(at as double)")
    )
    ours = read_once(hg, folder, collected, "berlin", **options)
    assert ours == sorted((tuple(row) for row in spark.collect()), key=str)
    assert ours[0] == (1, 'say "hi", or C:\\', 1_782_900_000.0)  # 10:00 UTC


@pytest.mark.usefixtures("berlin")
def test_a_time_zone_of_the_users_own_wins(hg: Headgate, collected: Collected, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("1,a,2026-07-01 12:00:00\n")
    rows = read_once(hg, tmp_path / "in", collected, "utc", timezone="UTC")
    assert rows == [(1, "a", 1_782_907_200.0)]
