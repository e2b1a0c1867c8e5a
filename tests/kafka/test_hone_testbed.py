"""The WordCount testbed on a real broker: what it counts is what was sent, for either source."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate.bench.hone import testbed
from headgate.bench.hone.calibration import Room
from headgate.bench.hone.programme import CONTENDERS, PARTIAL_KEY, SHUFFLE, Workload
from headgate.bench.hone.sentences import sentences
from headgate.bench.hone.skew import CATCH_UP, PARTITIONS, Traffic
from headgate.bench.hone.word_count import word_count
from headgate.bench.kafka.broker import LocalBroker

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


def test_both_groupings_count_the_same_words(spark: SparkSession) -> None:
    made = sentences(300, 10, seed=1)
    kafka = spark.createDataFrame(
        [(number, bytearray(each)) for number, each in enumerate(made)], "offset long, value binary"
    )
    wanted = Counter(word for each in made for word in each.decode().split(" "))
    for grouping in (SHUFFLE, PARTIAL_KEY):
        assert {row["word"]: row["count"] for row in word_count(kafka, grouping).collect()} == wanted


@pytest.mark.parametrize(("name", "grouping"), [("lbf", PARTIAL_KEY), ("spark", SHUFFLE)])
def test_a_run_tells_the_latency_of_every_record(
    spark: SparkSession, broker: LocalBroker, tmp_path: Path, name: str, grouping: str
) -> None:
    traffic = Traffic(CATCH_UP, rate=300.0, seed=1, settle_s=1.0, seconds=4.0, max_words=10)
    came = [((each >= 1.0) & (each < 3.0)).sum() for each in traffic.stamps_s()]
    bench = testbed.Testbed(spark, broker.address, tmp_path)
    found = bench.run(CONTENDERS[name], Workload(grouping, 10), Room(0.5, 1_000), traffic, measure_s=2.0)
    # The burst is sent when the measured time begins; of the rest some slip over its end if the machine is busy.
    assert found["rows"] == pytest.approx(sum(came), rel=0.15) and came[1] > 1_800
    assert found["partitions"][1]["rows"] > 1_800
    assert found["unfinished_rows"] == 0
    assert len(found["partitions"]) == PARTITIONS and found["slowest"]["p99_s"] >= found["p50_s"] > 0
    assert found["batches"] >= 2
    assert 0 <= found["feeder_lag_p99_s"] <= found["feeder_lag_max_s"] < 10.0
