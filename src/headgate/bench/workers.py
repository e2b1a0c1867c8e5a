"""A Python worker for every task slot, before anything is measured.

Spark starts one whenever a task of a Python source finds all others at work. That takes a second and a half on a busy
machine, in the middle of some batch: minutes or hours after the start, the later the fewer batches run side by side.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

HOLD_S = 1.0
"""Long enough that all tasks run at once: workers start one after another."""

FORMAT = "headgate-bench-workers"


class Held(DataSource):
    """As many tasks as asked for, each of which takes a worker for a while and reads nothing."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return "nothing int"

    def reader(self, schema: StructType) -> DataSourceReader:
        return HeldReader(int(self.options["tasks"]))


class HeldReader(DataSourceReader):
    """Imports what sources of streams read with, and waits."""

    def __init__(self, tasks: int) -> None:
        self._tasks = tasks

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(number) for number in range(self._tasks)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        import headgate.sources.trace
        import headgate.workloads.linear_road  # noqa: F401 - imported here, so that no stream's task does

        time.sleep(HOLD_S)
        yield pa.record_batch([pa.array([], pa.int32())], names=["nothing"])


def start_workers(spark: SparkSession, slots: int) -> None:
    """Start them all; those of the same session that read streams are these."""
    spark.dataSource.register(Held)
    spark.read.format(FORMAT).option("tasks", str(slots)).load().write.format("noop").mode("overwrite").save()
