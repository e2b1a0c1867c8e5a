"""A query that is stopped and started again goes on where it was, with what it had learned."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from headgate import Headgate
from headgate.core.cost import CostModel
from tests.spark.conftest import counter, named, until

pytestmark = pytest.mark.spark

ROWS = 6_000


def aggregated(hg: Headgate) -> DataFrame:
    return counter(hg, "1000", rows=ROWS).groupBy((F.col("value") % 7).alias("k")).agg(F.count("*"), F.sum("value"))


def test_results_are_equal_whether_it_was_interrupted_or_not(spark: SparkSession, tmp_path: Path) -> None:
    sink, checkpoint = str(tmp_path / "out"), str(tmp_path / "checkpoint")
    for until_rows in (1_500, 3_500, ROWS):
        with Headgate(spark, records=tmp_path / "batches.jsonl") as hg:
            writer = named(counter(hg, "1000", rows=ROWS).select("value"), "plain").format("parquet")
            hg.start(writer.option("path", sink).option("checkpointLocation", checkpoint), deadline="2s")
            until(lambda n=until_rows: _read(spark, sink) >= n)  # type: ignore[misc]
    values = sorted(row.value for row in spark.read.parquet(sink).collect())
    assert values == list(range(ROWS))


def _read(spark: SparkSession, path: str) -> int:
    try:
        return spark.read.parquet(path).count()
    except Exception:  # nothing written yet
        return 0


def test_state_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    results: dict[int, tuple[int, int]] = {}

    def keep(df: DataFrame, batch_id: int) -> None:
        results.update({row[0]: (row[1], row[2]) for row in df.collect()})

    for share in (0.3, 1.0):
        with Headgate(spark, records=tmp_path / "batches.jsonl") as hg:
            writer = aggregated(hg).writeStream.queryName("grouped").outputMode("update").foreachBatch(keep)
            hg.start(writer.option("checkpointLocation", str(tmp_path / "checkpoint")), deadline="2s")
            until(lambda share=share: sum(count for count, _ in results.values()) >= share * ROWS)  # type: ignore[misc]
    assert results == {k: (len(range(k, ROWS, 7)), sum(range(k, ROWS, 7))) for k in range(7)}


def test_the_model_is_saved_beside_the_checkpoint_and_used_again(spark: SparkSession, tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint"

    def once(batches: int) -> list[str]:
        with Headgate(spark, records=tmp_path / "batches.jsonl") as hg:
            writer = named(counter(hg, "1000"), "learns").option("checkpointLocation", str(checkpoint))
            query = hg.start(writer, deadline="3s")
            until(lambda: len(query.batches) >= batches, 90)
            return [batch.code for batch in query.batches]

    assert once(5)[:3] == ["learning"] * 3
    saved = json.loads((checkpoint / "headgate" / "model.json").read_text())
    assert saved["batches"] >= 5
    assert "learning" not in once(2)


def test_a_query_that_ends_just_before_everything_stops_saves_what_it_learned(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hg = Headgate(spark, records=tmp_path / "batches.jsonl")
    writer = named(counter(hg, "1000"), "hasty").option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = hg.start(writer, deadline="3s")
    until(lambda: query.batches, 90)
    (saved := tmp_path / "checkpoint" / "headgate" / "model.json").unlink(missing_ok=True)
    forgetting, learned = threading.Event(), hg._learned

    def slowly(name: str) -> CostModel | None:
        forgetting.set()
        time.sleep(0.3)  # a busy machine
        return learned(name)

    monkeypatch.setattr(hg, "_learned", slowly)
    query.stop()
    assert forgetting.wait(30)
    hg.stop()
    assert json.loads(saved.read_text())["batches"] >= 1


def test_a_corrupt_saved_model_is_told_and_learned_anew(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "checkpoint" / "headgate"
    folder.mkdir(parents=True)
    (folder / "model.json").write_text('{"batches": "many"')
    with Headgate(spark, records=tmp_path / "batches.jsonl") as hg:
        writer = named(counter(hg, "1000"), "corrupt").option("checkpointLocation", str(tmp_path / "checkpoint"))
        query = hg.start(writer, deadline="3s")
        until(lambda: query.batches)
        assert query.batches[0].code == "learning"
    assert any("model.json" in record.getMessage() for record in caplog.records)


@pytest.mark.parametrize("source", ["trace", "files"])
def test_interrupted_in_its_very_first_batch(spark: SparkSession, tmp_path: Path, source: str) -> None:
    """Spark asks for a new beginning then, but the batch it runs again must be the one it had planned."""
    for index in range(3):
        (tmp_path / "in").mkdir(exist_ok=True)
        (tmp_path / "in" / f"{index}.json").write_text(json.dumps({"value": index}) + "\n")
    seen: list[list[int]] = []

    def fail_once(df: DataFrame, batch_id: int) -> None:
        seen.append(sorted(row["value"] for row in df.select("value").collect()))
        if len(seen) == 1:
            raise RuntimeError("the first time is hard")

    for attempt in range(2):
        with Headgate(spark, records=tmp_path / "batches.jsonl") as hg:
            files = hg.readStream.format("headgate-files").option("fileFormat", "json").schema("value int")
            df = counter(hg, "1000") if source == "trace" else files.load(str(tmp_path / "in"))
            writer = df.writeStream.queryName("first").foreachBatch(fail_once)
            query = hg.start(writer.option("checkpointLocation", str(tmp_path / "checkpoint")), deadline="2s")
            if attempt == 0:
                with pytest.raises(Exception, match="the first time is hard"):
                    query.awaitTermination(60)
            else:
                until(lambda: len(seen) >= 2)
    assert seen[0] == seen[1]
    assert seen[0] == list(range(len(seen[0]))) and seen[0]
