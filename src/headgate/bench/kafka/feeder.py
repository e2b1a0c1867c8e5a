"""Puts a trace into a Kafka topic at its own pace: ``python -m headgate.bench.kafka.feeder SETTING.json``.

A process of its own, because a driver that also produces would not be the driver that is measured. Records are CSV
lines, spread over the partitions by vehicle; the broker stamps them when they come.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headgate.bench.kafka.topics import producer, send
from headgate.core.traffic import parse_traffic
from headgate.workloads.linear_road import SCHEMA_DDL, LinearRoad, vehicles_for

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

STEP_S = 0.01
"""Records are sent in steps of this: short against any deadline."""

PARTITIONS = 4


def main(setting: dict[str, Any]) -> None:
    traffic = parse_traffic(setting["rate"], setting["seed"])
    road = LinearRoad(vehicles=vehicles_for(traffic.mean_rate), expressways=1, seed=setting["seed"])
    made = producer(setting["address"])
    origin_s, sent = setting["origin_s"], 0
    while True:
        due = traffic.count_before(max(0.0, time.time() - origin_s))
        if due > sent:
            for partition, line in _lines(road, sent, due, origin_s + traffic.stamps_s(sent, due)):
                send(made, setting["topic"], line, partition)
            sent = due
        made.poll(0)
        time.sleep(STEP_S)


def _lines(road: LinearRoad, first: int, last: int, stamps_s: np.ndarray[Any, Any]) -> list[tuple[int, str]]:
    batch = road.batch(first, last, stamps_s)
    columns = [batch.column(0).cast("int64").to_pylist(), *(column.to_pylist() for column in batch.columns[1:])]
    vehicle = batch.schema.get_field_index("vehicle")
    return [(row[vehicle] % PARTITIONS, ",".join(map(str, row))) for row in zip(*columns, strict=True)]


def reports_of(kafka: DataFrame) -> DataFrame:
    """The reports again, as the trace source has them."""
    from pyspark.sql import functions as F  # noqa: N812 - PySpark's own habit

    schema = SCHEMA_DDL.replace("timestamp timestamp", "timestamp bigint", 1)
    parsed = kafka.select(F.from_csv(F.col("value").cast("string"), schema).alias("report")).select("report.*")
    return parsed.withColumn("timestamp", F.timestamp_micros("timestamp"))


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text()))
