"""The queries to measure with, over a raw stream of Linear Road reports.

Each takes the streaming DataFrame as it comes from the source and sets the watermark itself, where it keeps state.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own habit

LATENESS = "1 second"
"""Reports come in the order of their stamps; more lateness would only keep more state."""

_RANGE, _SLIDE = "30 seconds", "1 second"
"""The benchmark's `range 30 slide 1`."""

_PLACE = ("highway", "direction", "segment")


@dataclass(frozen=True, slots=True)
class QuerySpec:
    """How a query is built and the output mode it wants."""

    build: Callable[[DataFrame], DataFrame]
    output_mode: Literal["append", "update"]


def lr1(reports: DataFrame) -> DataFrame:
    """LR1: every report, once for each report of the same vehicle in the 30 s up to it, itself included."""
    watched = reports.withWatermark("timestamp", LATENESS)
    recent = watched.select(F.col("vehicle").alias("a_vehicle"), F.col("timestamp").alias("a_timestamp"))
    within = F.expr(f"a_timestamp >= timestamp - interval {_RANGE} and a_timestamp <= timestamp")
    return watched.join(recent, (F.col("vehicle") == F.col("a_vehicle")) & within).select(*reports.columns)


def lr2(reports: DataFrame) -> DataFrame:
    """LR2: places where the average speed over the last 30 s, told every second, is below 40 mph."""
    return _by_place(reports, F.avg("speed").alias("avg_speed")).where("avg_speed < 40.0")


def lr3(reports: DataFrame) -> DataFrame:
    """LR3: reports of vehicles per place over the last 30 s, told every second."""
    return _by_place(reports, F.count("vehicle").alias("vehicles"))


def alerts(reports: DataFrame) -> DataFrame:
    """Vehicles that stand still, with their place: no state, hence no watermark."""
    return reports.where("speed = 0").select("timestamp", "vehicle", *_PLACE, "lane")


def _by_place(reports: DataFrame, value: Column) -> DataFrame:
    """`value` per place and window; every report counts in thirty windows. `timestamp` is the window's end."""
    windows = F.window("timestamp", _RANGE, _SLIDE)
    grouped = reports.withWatermark("timestamp", LATENESS).groupBy(windows, *_PLACE).agg(value)
    return grouped.select(F.col("window.end").alias("timestamp"), *_PLACE, grouped.columns[-1])


QUERIES: dict[str, QuerySpec] = {
    "lr1": QuerySpec(lr1, "append"),
    # A window's row is told again whenever it changes, instead of once at its end: results need not wait for it.
    "lr2": QuerySpec(lr2, "update"),
    "lr3": QuerySpec(lr3, "update"),
    "alerts": QuerySpec(alerts, "append"),
}
