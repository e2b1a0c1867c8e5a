"""What backups cost a running query: a stream-stream join with more than 200 MB of state, with and without them."""

from __future__ import annotations

import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from headgate.bench.state.programme import MB, Results, Say
from headgate.state.backup import Backup
from headgate.state.protection import Protection

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

ROWS_PER_BATCH = 8_000
STATE_BATCHES = 50
"""A row is kept for so many batches: about 230 MB in all."""
SETTLED = 1.3
"""The state is full and its files are of every age after so many times these batches."""
QUERY = "joined"
EVERY_S = 5.0
"""Six times as often as by default, so that a phase has several backups."""
BUILDING_S = 900.0
PLACES = 10


def on_spark(groups: int, seconds: float, say: Say) -> Results:
    """Phases with and without backups in turns, once the state is full; then a restore, and the query goes on."""
    folder = Path(tempfile.mkdtemp(prefix="headgate-state-"))
    backup = Backup([str(folder / f"place-{number}") for number in range(PLACES)], every=EVERY_S)
    try:
        with _spark() as spark:
            query = _start(spark, folder / "checkpoint")
            _build(query, say)
            measured = _phases(query, backup, folder, groups, seconds, say)
            query.stop()
            for number in range(3):
                shutil.rmtree(folder / f"place-{number}")
            began_s = time.perf_counter()
            manifest = backup.restore(QUERY, str(folder / "restored"))
            took_s = time.perf_counter() - began_s
            shutil.rmtree(folder / "checkpoint")
            went_on = _goes_on(spark, folder / "restored", manifest.batch)
            say(f"{manifest.bytes / MB:,.0f} MB restored in {took_s:.2f} s with 3 places lost; went on: {went_on}")
            return measured | {
                "state_mb": manifest.bytes / MB, "files": len(manifest.files), "restore_s": took_s, "went_on": went_on,
            }  # fmt: skip
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _spark() -> Iterator[SparkSession]:
    from headgate.engine.session import ROCKSDB, local_cores, session

    spark = session("headgate-state", master=f"local[{local_cores()}]", conf={"spark.ui.enabled": "false"} | ROCKSDB)
    try:
        yield spark
    finally:
        spark.stop()


def _start(spark: SparkSession, checkpoint: Path) -> StreamingQuery:
    left = _side(spark, "l")
    right = _side(spark, "r")
    from pyspark.sql.functions import expr

    width = f"INTERVAL {STATE_BATCHES} SECONDS"
    near = f"lkey = rkey AND rtime BETWEEN ltime - {width} AND ltime + {width}"

    joined = left.join(right, expr(near))
    writer = joined.writeStream.format("noop").outputMode("append").queryName(QUERY)
    return writer.option("checkpointLocation", str(checkpoint)).start()


def _side(spark: SparkSession, name: str) -> DataFrame:
    """Every key meets its partner, so both sides are looked up; 256 bytes of noise each, so nothing can be squeezed."""
    from pyspark.sql.functions import concat, expr

    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", ROWS_PER_BATCH).load()
    noise = concat(*(expr(f"unhex(sha2(concat(value, '{name}{part}'), 256))") for part in range(8)))
    columns = source.select(
        source.value.alias(f"{name}key"), source.timestamp.alias(f"{name}time"), noise.alias(f"{name}noise")
    )
    return columns.withWatermark(f"{name}time", "0 seconds")  # every batch of this source is a second later


def _build(query: StreamingQuery, say: Say) -> None:
    """Until as many rows leave the state as come."""
    give_up_s, wanted = time.monotonic() + BUILDING_S, int(STATE_BATCHES * SETTLED)
    while (done := _batch(query)) < wanted:
        if not query.isActive or time.monotonic() > give_up_s:
            raise RuntimeError(f"the state did not fill: batch {done} of {wanted}; {query.exception()}")
        say(f"filling the state: batch {done} of {wanted}")
        time.sleep(10.0)


def _batch(query: StreamingQuery) -> int:
    return int(query.recentProgress[-1]["batchId"]) if query.recentProgress else 0


def _phases(query: StreamingQuery, backup: Backup, folder: Path, groups: int, seconds: float, say: Say) -> Results:
    """With, without, without, with, as often as there are groups: what drifts with time cancels out in each of them."""
    found = []
    for group in range(groups):
        times: dict[str, list[float]] = {"with": [], "without": []}
        saves = {"backups": 0, "coded_mb": 0.0, "took_s": 0.0}
        for kind in ("with", "without", "without", "with"):
            protection = Protection(backup, QUERY)
            if kind == "with":
                protection.begin(str(folder / "checkpoint"))
            began = _batch(query)
            time.sleep(seconds)
            times[kind] += [
                each["durationMs"]["triggerExecution"] / 1000
                for each in query.recentProgress
                if each["batchId"] > began
            ]
            protection.stop()
            status = protection.status
            saves["backups"] += status.backups
            saves["coded_mb"] += status.coded_bytes / MB
            saves["took_s"] = max(saves["took_s"], status.took_s)
        means = {kind: statistics.fmean(values) for kind, values in times.items()}
        found.append({"batch_s": times, "ratio": means["with"] / means["without"], **saves})
        told = f"{means['with']:.2f} s per batch with backups, {means['without']:.2f} s without"
        say(f"group {group + 1} of {groups}: {told}")
    return {"groups": found}


def _goes_on(spark: SparkSession, checkpoint: Path, batch: int) -> bool:
    query = _start(spark, checkpoint)
    give_up_s = time.monotonic() + 120
    try:
        while (progress := query.lastProgress) is None and time.monotonic() < give_up_s and query.isActive:
            time.sleep(0.2)
        return progress is not None and progress["batchId"] == batch + 1
    finally:
        query.stop()
