"""What backups cost a running query: a stream-stream join whose state grows beyond 200 MB, with and without them."""

from __future__ import annotations

import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headgate.bench.state.programme import MB, Results, Say
from headgate.state.backup import Backup
from headgate.state.protection import Protection

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

ROWS_PER_BATCH = 8_000
STATE_BYTES = 200 * MB
QUERY = "joined"
EVERY_S = 5.0
"""Six times as often as by default, so that a phase has several backups."""
BUILDING_S = 900.0
PLACES = 10


def on_spark(phases: int, seconds: float, say: Say) -> Results:
    """Phases with and without backups in turns, after the state has grown; then a restore, and the query goes on."""
    folder = Path(tempfile.mkdtemp(prefix="headgate-state-"))
    backup = Backup([str(folder / f"place-{number}") for number in range(PLACES)], every=EVERY_S)
    try:
        with _spark() as spark:
            query = _start(spark, folder / "checkpoint")
            _build(query, folder, say)
            measured = _phases(query, backup, folder, phases, seconds, say)
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
    near = "lkey = rkey AND rtime >= ltime AND rtime <= ltime + INTERVAL 1 HOUR"
    from pyspark.sql.functions import expr

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
    return columns.withWatermark(f"{name}time", "1 hour")


def _build(query: StreamingQuery, folder: Path, say: Say) -> None:
    """Until the state is large: its files, as the checkpoint has them."""
    give_up_s, told = time.monotonic() + BUILDING_S, 0
    while (size := _state_bytes(folder / "checkpoint")) < STATE_BYTES:
        if not query.isActive or time.monotonic() > give_up_s:
            raise RuntimeError(f"the state did not grow: {size / MB:,.0f} MB; {query.exception()}")
        if size // (50 * MB) > told:
            told = size // (50 * MB)
            say(f"state: {size / MB:,.0f} MB")
        time.sleep(1.0)


def _state_bytes(checkpoint: Path) -> int:
    from headgate.state.folder import LocalFolder
    from headgate.state.snapshot import Gone, look

    try:
        snapshot = look(LocalFolder(checkpoint)) if checkpoint.is_dir() else None
    except Gone:
        return 0
    return 0 if snapshot is None else sum(seen.length for seen in snapshot.files.values())


def _phases(query: StreamingQuery, backup: Backup, folder: Path, phases: int, seconds: float, say: Say) -> Results:
    """With, without, without, with: the state grows, and so do the batches."""
    times: dict[str, list[float]] = {"with": [], "without": []}
    saves: list[dict[str, Any]] = []
    for phase in range(2 * phases):
        kind = "with" if phase % 4 in (0, 3) else "without"
        protection = Protection(backup, QUERY)
        if kind == "with":
            protection.begin(str(folder / "checkpoint"))
        began = query.recentProgress[-1]["batchId"]
        time.sleep(seconds)
        batches = [each["durationMs"]["triggerExecution"] for each in query.recentProgress if each["batchId"] > began]
        protection.stop()
        times[kind].append(statistics.median(batches) / 1000)
        if kind == "with":
            status = protection.status
            saves.append({"backups": status.backups, "took_s": status.took_s, "coded_mb": status.coded_bytes / MB})
        say(f"{kind} backups: {times[kind][-1]:.2f} s per batch, {len(batches)} batches")
    ratios = [one / other for one, other in zip(times["with"], times["without"], strict=True)]
    return {"batch_s": times, "ratios": ratios, "saves": saves}


def _goes_on(spark: SparkSession, checkpoint: Path, batch: int) -> bool:
    query = _start(spark, checkpoint)
    give_up_s = time.monotonic() + 120
    try:
        while (progress := query.lastProgress) is None and time.monotonic() < give_up_s and query.isActive:
            time.sleep(0.2)
        return progress is not None and progress["batchId"] == batch + 1
    finally:
        query.stop()
