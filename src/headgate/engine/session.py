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


_FILE_MANAGER = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"

SLOTS_PER_CORE = 3
"""Tasks that a local Spark runs at once, per core. Spark never takes a core back from a task, but the operating system
shares it, as long as Spark has a slot left for the urgent one."""

_ROCKSDB_STORE = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"

ROCKSDB = {
    "spark.sql.streaming.stateStore.providerClass": _ROCKSDB_STORE,
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows": "false",
}
"""For ``session(conf=ROCKSDB)``: state that may outgrow the heap. Spark's own store, on the heap, stays the default
because it is far cheaper as long as the state fits: see docs/decisions/11."""

DEFAULTS = (
    Setting(
        "spark.scheduler.mode", "FAIR", "one pool per query; without it the queries starve each other in one queue"
    ),
    Setting(
        "spark.sql.shuffle.partitions",
        "{cores}",
        "one task a core: every further one costs a state store's commit in every batch, 200 more than the work",
    ),
    Setting("spark.default.parallelism", "{cores}", "the cores, whatever the number of task slots", local=True),
    Setting(
        "spark.sql.streaming.checkpointFileManagerClass",
        _FILE_MANAGER,
        "on a local disk Spark's own choice took four times as long per log entry: 112 ms of a batch against 25",
        local=True,
    ),
    Setting(
        "spark.driver.memory",
        "{heap}",
        "all tasks and their state live in the driver; Spark's 1 GB is soon full",
        local=True,
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

    A master given here or to spark-submit is kept; otherwise all cores of this machine are used, with
    :data:`SLOTS_PER_CORE` task slots each.
    """
    from pyspark.sql import SparkSession

    # Planning processes and workers must be this Python, or they would not find this package.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(app_name)
    if master is not None or "PYSPARK_GATEWAY_PORT" not in os.environ:  # spark-submit has chosen a master already
        builder = builder.master(master or f"local[{SLOTS_PER_CORE * local_cores()}]")
    for setting in defaults(local="PYSPARK_GATEWAY_PORT" not in os.environ and _is_local(master)):
        builder = builder.config(setting.key, setting.value.format(cores=_cores_of(master), heap=_heap()))
    for key, value in (conf or {}).items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel(os.environ.get("HEADGATE_SPARK_LOG", "ERROR"))
    return spark


def defaults(*, local: bool) -> list[Setting]:
    """The settings for a master of that kind."""
    return [setting for setting in DEFAULTS if local or not setting.local]


def _is_local(master: str | None) -> bool:
    return master is None or master == "local" or master.startswith("local[")


def _heap() -> str:
    """A third of the memory: state and shuffles live there, and the rest is for Python processes and the file cache."""
    total_mb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20
    return f"{min(8192, max(1024, total_mb // 3))}m"


def _cores_of(master: str | None) -> int:
    """Cores of a local master, which may have more slots than cores; a guess elsewhere, to be set with `conf`."""
    return min(local_slots(master or "local[*]") or local_cores(), local_cores())


def local_slots(master: str) -> int | None:
    """Tasks that a local master runs at once; None for a cluster."""
    if not _is_local(master):
        return None
    text = master.removeprefix("local").strip("[]").split(",")[0]
    return local_cores() if text == "*" else int(text or 1)


def local_cores() -> int:
    """The cores of this machine that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 2
