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
    local: bool = False
    """Only for a local master, whose checkpoints and memory are this machine's."""
    since: tuple[int, int] = (4, 2)
    """The first Spark that knows it."""


_FILE_MANAGER = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"

DEFAULTS = (
    Setting(
        "spark.scheduler.mode", "FAIR", "one pool per query; without it the queries starve each other in one queue"
    ),
    Setting(
        "spark.sql.shuffle.partitions",
        "{tasks}",
        "four tasks a core: 200 tiny ones cost more than most batches' work, long ones block urgent queries",
    ),
    Setting("spark.sql.streaming.stateStore.providerClass", ROCKSDB, "state off the heap: no long GC pauses"),
    Setting(
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled",
        "true",
        "writes what changed in a batch instead of a snapshot",
    ),
    Setting(
        "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows",
        "false",
        "counting rows costs a look-up before every write; numRowsTotal is then not told",
    ),
    Setting(
        "spark.sql.streaming.join.stateFormatVersion",
        "4",
        "joins find expired rows by an index on time instead of scanning their whole state in every batch",
        since=(4, 3),
    ),
    Setting(
        "spark.sql.streaming.checkpointFileManagerClass",
        _FILE_MANAGER,
        "on a local disk Spark's own choice starts several processes per file: 90 ms of every batch",
        local=True,
    ),
    Setting(
        "spark.driver.memory", "{heap}", "all tasks run in the driver, and 1 GB makes it collect garbage", local=True
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
    for setting in defaults(local="PYSPARK_GATEWAY_PORT" not in os.environ and _is_local(master)):
        builder = builder.config(setting.key, setting.value.format(tasks=4 * _cores_of(master), heap=_heap()))
    for key, value in (conf or {}).items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel(os.environ.get("HEADGATE_SPARK_LOG", "ERROR"))
    return spark


def defaults(*, local: bool) -> list[Setting]:
    """The settings for the Spark that is installed."""
    import pyspark

    version = tuple(int(part) for part in pyspark.__version__.split(".")[:2])
    return [setting for setting in DEFAULTS if setting.since <= version and (local or not setting.local)]


def _is_local(master: str | None) -> bool:
    return master is None or master.startswith("local")


def _heap() -> str:
    """A quarter of the memory, as a JVM would take by itself if Spark let it, but no more than streaming needs."""
    total_mb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20
    return f"{min(4096, max(1024, total_mb // 4))}m"


def _cores_of(master: str | None) -> int:
    """Cores of a local master; a guess of two per partition's worth elsewhere, to be set with `conf`."""
    text = (master or "local[*]").removeprefix("local[").removesuffix("]").split(",")[0]
    if text.isdigit():
        return int(text)
    return local_cores()


def local_cores() -> int:
    """The cores of this machine that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 2
