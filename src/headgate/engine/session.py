"""A Spark session with defaults that suit several streaming queries on shared cores, each with its reason."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class Setting:
    """One default and why."""

    key: str
    value: str
    reason: str


ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"

DEFAULTS = (
    Setting(
        "spark.scheduler.mode", "FAIR", "one pool per query; without it the queries starve each other in one queue"
    ),
    Setting("spark.sql.shuffle.partitions", "{cores}", "200 tiny tasks per batch cost more than most batches' work"),
    Setting("spark.sql.streaming.stateStore.providerClass", ROCKSDB, "state off the heap: no long GC pauses"),
    Setting(
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled",
        "true",
        "writes what changed in a batch instead of a snapshot",
    ),
    Setting(
        "spark.sql.streaming.noDataMicroBatches.enabled",
        "false",
        "an extra batch after every batch doubles the fixed cost; windows close with the next data",
    ),
    Setting("spark.locality.wait", "0s", "a free core elsewhere beats 3 s of waiting for a local one"),
    Setting("spark.sql.streaming.metricsEnabled", "false", "nobody reads Dropwizard gauges here"),
    Setting("spark.ui.showConsoleProgress", "false", "Spark's progress bar writes over the live view"),
    Setting("spark.sql.adaptive.enabled", "false", "re-planning small streaming stages costs more than it gains"),
    Setting("spark.sql.session.timeZone", "UTC", "arrival stamps and event times in one zone"),
    Setting("spark.python.authenticate.socketTimeout", "60s", "Python processes start slowly on a machine under load"),
    Setting("spark.python.worker.reuse", "true", "starting Python workers costs more than a small batch"),
)


def session(
    app_name: str = "headgate", master: str | None = None, conf: Mapping[str, str] | None = None
) -> SparkSession:
    """Start (or get) a session with :data:`DEFAULTS`; `conf` wins over them.

    A master given here or to spark-submit is kept; otherwise all cores of this machine are used.
    """
    from pyspark.sql import SparkSession

    # Planning processes and workers must be this Python, or they would not find this package.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(app_name)
    if master is not None or "PYSPARK_GATEWAY_PORT" not in os.environ:  # spark-submit has chosen a master already
        builder = builder.master(master or "local[*]")
    cores = str(_cores_of(master))
    for setting in DEFAULTS:
        builder = builder.config(setting.key, setting.value.format(cores=cores))
    for key, value in (conf or {}).items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel(os.environ.get("HEADGATE_SPARK_LOG", "ERROR"))
    return spark


def _cores_of(master: str | None) -> int:
    """Cores of a local master; a guess of two per partition's worth elsewhere, to be set with `conf`."""
    text = (master or "local[*]").removeprefix("local[").removesuffix("]").split(",")[0]
    if text.isdigit():
        return int(text)
    return local_cores()


def local_cores() -> int:
    """The cores of this machine that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 2
