"""The trace source: deterministic records at given rates, for demos, benchmarks and tests.

    hg.readStream.format("headgate-trace").option("workload", "linear-road").option("rate", "U(1000)").load()

A record's content is a function of its number, its arrival a function of the rate and the seed, so the same offsets
give the same rows for ever: also after a restart, also on another machine. A trace begins when its query first starts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol

from pyspark.sql.datasource import DataSource, DataSourceStreamReader
from pyspark.sql.types import StructType

from headgate.core.arrivals import Arrivals
from headgate.core.split import worthwhile_tasks
from headgate.core.traffic import Traffic, parse_traffic
from headgate.errors import BadParameter
from headgate.sources.feed import Feed, Offset, Pending, Range, Taken
from headgate.sources.options import TASKS, gate_of, positive_int
from headgate.sources.reader import GatedReader

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

FORMAT = "headgate-trace"

_ARROW_ROWS = 65_536


class Workload(Protocol):
    """Rows by number."""

    @property
    def schema_ddl(self) -> str: ...

    def batch(self, first: int, last: int, stamps_s: np.ndarray) -> pa.RecordBatch: ...


def find_workload(name: str, seed: int, traffic: Traffic, options: Mapping[str, str]) -> Workload:
    """Return the workload called `name`: counter, linear-road, or replay of a file."""
    if name == "counter":
        from headgate.workloads.counter import Counter

        return Counter()
    if name == "linear-road":
        from headgate.workloads.linear_road import LinearRoad, vehicles_for

        vehicles = positive_int(options, "vehicles", None) or vehicles_for(traffic.mean_rate)
        return LinearRoad(vehicles=vehicles, expressways=positive_int(options, "expressways", 1) or 1, seed=seed)
    if name.startswith("replay:"):
        from headgate.workloads.replay import Replay

        return Replay(name.removeprefix("replay:"))
    raise BadParameter(
        "workload", name, "there is no such workload", 'use "counter", "linear-road" or "replay:PATH.parquet"'
    )


class TraceSource(DataSource):
    """``format("headgate-trace")``; options workload, rate, seed, rows, maxRowsPerTrigger, vehicles, expressways."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return _parse(self.options)[1].schema_ddl

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 (Spark's name)
        traffic, workload = _parse(self.options)
        _check_schema(schema, workload)
        return TraceReader(self.options, traffic, workload)


def _parse(options: Mapping[str, str]) -> tuple[Traffic, Workload]:
    seed = positive_int(options, "seed", 1) or 1
    traffic = parse_traffic(options.get("rate", "1000"), seed)
    return traffic, find_workload(options.get("workload", "counter"), seed, traffic, options)


def _check_schema(schema: StructType, workload: Workload) -> None:
    # As text: planning processes have no SparkContext, which PySpark needs to parse DDL.
    given = ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in schema)
    wanted = workload.schema_ddl.replace("`", "")
    if given != wanted:
        raise BadParameter("schema", given, f"the workload has {wanted}", "leave .schema(...) out")


class TraceReader(GatedReader):
    """Gated reader over a trace."""

    def __init__(self, options: Mapping[str, str], traffic: Traffic, workload: Workload) -> None:
        super().__init__(
            gate=gate_of(options),
            read_range=TraceRangeReader(traffic, workload),
            max_rows=positive_int(options, "maxRowsPerTrigger", None),
            tasks=positive_int(options, TASKS, 2) or 2,
        )
        self._traffic = traffic
        self._rows = positive_int(options, "rows", None)

    def make_feed(self, state_dir: str | None) -> Feed:
        return TraceFeed(self._traffic, self._rows)

    def parts_of(self, share: Range) -> list[str]:
        return [f"rows[{share['first']}:{share['last']}]"]


class TraceFeed:
    """Offsets are record numbers; `origin_s` is the wall time of the trace's beginning."""

    def __init__(self, traffic: Traffic, rows: int | None = None) -> None:
        self._traffic = traffic
        self._rows = rows

    def initial(self, now_s: float) -> Offset:
        return {"row": 0, "origin_s": now_s}

    def pending(self, start: Offset, now_s: float) -> Pending:
        last = self._arrived(start, now_s)
        if last <= start["row"]:
            return Pending(0, None)
        return Pending(last - start["row"], start["origin_s"] + self._traffic.stamp_s(start["row"]))

    def take(self, start: Offset, max_rows: int | None, now_s: float) -> Taken:
        first, last = start["row"], self._arrived(start, now_s)
        if max_rows is not None:
            last = min(last, first + max_rows)
        arrivals = self._traffic.arrivals(first, last, start["origin_s"]) if last > first else Arrivals.empty()
        return Taken({"row": last, "origin_s": start["origin_s"]}, last - first, arrivals)

    def ranges(self, start: Offset, end: Offset, tasks: int, row_work_s: float | None = None) -> Sequence[Range]:
        first, last = start["row"], end["row"]
        count = worthwhile_tasks(last - first, row_work_s, tasks)
        edges = [first + (last - first) * index // count for index in range(count + 1)]
        # The origin of `end`: Spark makes a new beginning for a first batch that it runs again.
        return [{"first": a, "last": b, "origin_s": end["origin_s"]} for a, b in pairwise(edges) if b > a]

    def next_arrival_s(self, start: Offset, now_s: float) -> float:
        if self._rows is not None and start["row"] >= self._rows:
            return now_s + 60.0
        return float(start["origin_s"] + self._traffic.stamp_s(start["row"]))

    def freeze(self, now_s: float) -> None:
        """What has arrived is a matter of time alone."""

    def forget(self, end: Offset) -> None:
        """A trace can always be made again."""

    def _arrived(self, start: Offset, now_s: float) -> int:
        arrived = self._traffic.count_before(max(0.0, now_s - start["origin_s"]))
        return arrived if self._rows is None else min(arrived, self._rows)


class TraceRangeReader:
    """Makes the rows of a range, in an executor."""

    def __init__(self, traffic: Traffic, workload: Workload) -> None:
        self._traffic = traffic
        self._workload = workload

    def __call__(self, share: Range) -> Iterator[pa.RecordBatch]:
        for first in range(share["first"], share["last"], _ARROW_ROWS):
            last = min(first + _ARROW_ROWS, share["last"])
            yield self._workload.batch(first, last, share["origin_s"] + self._traffic.stamps_s(first, last))
