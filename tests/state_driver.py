"""A driver to be killed: counts by key with two stateful operators, its state backed up while it runs.

    python -m tests.state_driver INPUT CHECKPOINT SINK PLACES KEY_FILE [drain]

A batch that is run again replaces its file in the sink. PLACES is a file with one place per line.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from headgate import ROCKSDB, Backup, Headgate, session
from headgate.state.code import Code

CODE = Code(raw=4, check=2)
QUERY = "counted"


def backup_at(places: Path, key_file: Path) -> Backup:
    return Backup(places.read_text().split(), every=0.3, key_file=str(key_file), raw=CODE.raw, check=CODE.check)


def main(source: str, checkpoint: str, sink: str, places: str, key_file: str, *, drain: bool) -> None:
    folder = Path(sink)
    folder.mkdir(exist_ok=True)

    def keep(df: DataFrame, batch_id: int) -> None:
        part = folder / f".{batch_id}.part"
        part.write_text(json.dumps([list(row) for row in df.collect()]))
        os.replace(part, folder / f"{batch_id}.json")

    conf = {"spark.ui.enabled": "false", "spark.sql.streaming.stateStore.minDeltasForSnapshot": "3"}
    with Headgate(session("killed", master="local[2]", conf=conf | ROCKSDB), records=f"{sink}.jsonl") as hg:
        reader = hg.readStream.format("headgate-files").schema("k long, v long, t timestamp")
        files = reader.option("fileFormat", "json").load(source)
        unique = files.withWatermark("t", "1 hour").dropDuplicates(["v", "t"])
        writer = unique.groupBy("k").agg(F.count("*"), F.sum("v")).writeStream.outputMode("update")
        writer = writer.queryName(QUERY).foreachBatch(keep).option("checkpointLocation", checkpoint)
        if drain:
            writer = writer.trigger(availableNow=True)
        hg.start(writer, deadline="1s", backup=backup_at(Path(places), Path(key_file))).awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:6], drain=sys.argv[6:] == ["drain"])
