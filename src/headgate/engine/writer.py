"""What a user's ``writeStream`` says about the query it will start, and starting it in a pool of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from headgate.engine import internals
from headgate.errors import BadParameter
from headgate.sources import options
from headgate.sources.gate import FORMAT as GATE_FORMAT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import DataStreamWriter

_ORDERED_SOURCES = 4
"""Spark keeps a query's sources in a Scala Map, which remembers the order of its first four entries only."""

_NO_TRIGGER = ("ProcessingTimeTrigger(0)", "AvailableNowTrigger", "OneTimeTrigger")


def gates_of(writer: DataStreamWriter) -> list[str]:
    """The gates in its query, in the order in which Spark asks them; at least one."""
    leaves = internals.stream_leaves(internals.writer_frame(writer), options.GATE)
    gates = [leaf.gate for leaf in leaves if leaf.gate is not None]
    if len(leaves) > _ORDERED_SOURCES and any(leaf.source == GATE_FORMAT for leaf in leaves):
        problem = f"beyond {_ORDERED_SOURCES} Spark asks them in no fixed order, and a gate must come before its source"
        remedy = "gate a union once: hg.gate(first.union(second))"
        raise BadParameter("writer", f"a query of {len(leaves)} sources", problem, remedy)
    if not gates:
        raise BadParameter(
            "writer", "a query without a gate", "Headgate cannot decide about its batches",
            "wrap its source: hg.gate(spark.readStream...), or read it with hg.readStream",
        )  # fmt: skip
    return gates


def check_trigger(writer: DataStreamWriter, deadline: object) -> None:
    """Refuse a fixed trigger beside a deadline: only one of them can decide."""
    trigger = internals.writer_trigger(writer)
    if deadline is not None and not trigger.startswith(_NO_TRIGGER):
        raise BadParameter(
            "trigger", trigger, f"the deadline ({deadline}) decides when batches start",
            'leave .trigger(...) out, or only measure with admission="observe"',
        )  # fmt: skip


def name_of(writer: DataStreamWriter) -> str | None:
    return internals.writer_option(writer, "queryName")


def checkpoint_of(spark: SparkSession, writer: DataStreamWriter, name: str) -> str | None:
    """The checkpoint folder that the user chose, for this query or for all of the session."""
    given = internals.writer_option(writer, "checkpointLocation")
    root = spark.conf.get("spark.sql.streaming.checkpointLocation", None)
    if given is not None or not root:
        return given
    return f"{root}/{name}" if "://" in root else str(Path(root) / name)


def can_recover(writer: DataStreamWriter) -> bool:
    """Whether Spark lets a query with this sink go on from its checkpoint."""
    return internals.writer_format(writer) != "memory"


@contextmanager
def own_pool(spark: SparkSession, query: str) -> Iterator[None]:
    """What is started inside has a FAIR pool of its own; the caller's is left as it was."""
    context = spark.sparkContext
    before = context.getLocalProperty("spark.scheduler.pool")
    context.setLocalProperty("spark.scheduler.pool", internals.pool_name(query))
    try:
        yield
    finally:
        context.setLocalProperty("spark.scheduler.pool", before)  # type: ignore[arg-type]
