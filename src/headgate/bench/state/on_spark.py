"""What backups cost a running query with more than 200 MB of state: a stream-stream join, and a wide aggregate."""

from __future__ import annotations

import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from headgate.bench.race import Say
from headgate.bench.state.programme import MB, Results
from headgate.state.backup import Backup
from headgate.state.protection import Protection

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

QUERY = "measured"
ROWS_PER_BATCH = {"join": 8_000, "aggregate": 5_000}
STATE_BATCHES = {"join": 50, "aggregate": 100}
"""A join keeps a row for so many batches; an aggregate comes back to a key after so many."""
SETTLED = 1.3
"""The state is full and its files are of every age after so many times these batches."""
NOISE_BYTES = {"join": 256, "aggregate": 512}
"""Of every row, so that nothing can be squeezed: more than 200 MB in all."""
BUILDING_S = 900.0
PLACES = 10


def on_spark(kind: str, groups: int, seconds: float, every: str, pace_s: float, say: Say) -> Results:
    """Phases with and without backups in turns, once the state is full; then a restore, and the query goes on."""
    folder = Path(tempfile.mkdtemp(prefix="headgate-state-"))
    backup = Backup([str(folder / f"place-{number}") for number in range(PLACES)], every=every)
    try:
        with _spark() as spark:
            query = _start(spark, kind, folder / "checkpoint", pace_s)
            _build(query, kind, say)
            measured = _phases(query, backup, folder, groups, seconds, say)
            query.stop()
            for number in range(3):
                shutil.rmtree(folder / f"place-{number}")
            began_s = time.perf_counter()
            manifest = backup.restore(QUERY, str(folder / "restored"))
            took_s = time.perf_counter() - began_s
            shutil.rmtree(folder / "checkpoint")
            went_on = _goes_on(spark, kind, folder / "restored", manifest.batch)
            say(f"{manifest.bytes / MB:,.0f} MB restored in {took_s:.2f} s with 3 places lost; went on: {went_on}")
            return measured | {
                "every": every, "pace_s": pace_s, "state_mb": manifest.bytes / MB, "files": len(manifest.files),
                "restore_s": took_s, "went_on": went_on,
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


def _start(spark: SparkSession, kind: str, checkpoint: Path, pace_s: float = 0.0) -> StreamingQuery:
    df, mode = (_joined(spark), "append") if kind == "join" else (_aggregated(spark), "update")
    writer = df.writeStream.format("noop").outputMode(mode).queryName(QUERY)
    writer = writer.trigger(processingTime=f"{pace_s} seconds")
    return writer.option("checkpointLocation", str(checkpoint)).start()


def _joined(spark: SparkSession) -> DataFrame:
    """Every key meets its partner, so both sides are looked up."""
    from pyspark.sql.functions import expr

    left, right = (_rows(spark, "join", name).withWatermark(f"{name}time", "0 seconds") for name in ("l", "r"))
    width = f"INTERVAL {STATE_BATCHES['join']} SECONDS"  # every batch of this source is a second later
    return left.join(right, expr(f"lkey = rkey AND rtime BETWEEN ltime - {width} AND ltime + {width}"))


def _aggregated(spark: SparkSession) -> DataFrame:
    from pyspark.sql.functions import count, expr, max_by

    keys = ROWS_PER_BATCH["aggregate"] * STATE_BATCHES["aggregate"]
    rows = _rows(spark, "aggregate", "a")
    return rows.groupBy(expr(f"akey % {keys}").alias("key")).agg(count("*"), max_by("anoise", "akey"))


def _rows(spark: SparkSession, kind: str, name: str) -> DataFrame:
    from pyspark.sql.functions import concat, expr

    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", ROWS_PER_BATCH[kind]).load()
    parts = NOISE_BYTES[kind] // 32
    noise = concat(*(expr(f"unhex(sha2(concat(value, '{name}{part}'), 256))") for part in range(parts)))
    return source.select(
        source.value.alias(f"{name}key"), source.timestamp.alias(f"{name}time"), noise.alias(f"{name}noise")
    )


def _build(query: StreamingQuery, kind: str, say: Say) -> None:
    """Until the state grows no more."""
    give_up_s, wanted = time.monotonic() + BUILDING_S, int(STATE_BATCHES[kind] * SETTLED)
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


def _goes_on(spark: SparkSession, kind: str, checkpoint: Path, batch: int) -> bool:
    query = _start(spark, kind, checkpoint)
    give_up_s = time.monotonic() + 120
    try:
        while (progress := query.lastProgress) is None and time.monotonic() < give_up_s and query.isActive:
            time.sleep(0.2)
        return progress is not None and progress["batchId"] == batch + 1
    finally:
        query.stop()
