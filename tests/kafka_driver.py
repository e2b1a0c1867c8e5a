"""A driver to be killed: reads a topic through Headgate and keeps every batch in a file of its own.

    HEADGATE_TEST_MASTER=spark://... python -m tests.kafka_driver ADDRESS TOPIC FOLDER [drain]

A batch that is run again replaces its file: the sink is idempotent by batch id, as exactly-once needs it to be.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from pyspark.sql import DataFrame

from headgate import Headgate, session

CONF = {
    "spark.ui.enabled": "false", "spark.executor.cores": "1", "spark.executor.memory": "1g", "spark.cores.max": "2",
    "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1", "spark.locality.wait": "0s",
}  # fmt: skip


def main(address: str, topic: str, folder: str, *, drain: bool) -> None:
    sink = Path(folder) / "sink"
    sink.mkdir(exist_ok=True)

    def keep(df: DataFrame, batch_id: int) -> None:
        rows = [[row.partition, row.offset, bytes(row.value).decode()] for row in df.collect()]
        part = sink / f".{batch_id}.part"
        part.write_text(json.dumps(rows))
        os.replace(part, sink / f"{batch_id}.json")

    master = os.environ.get("HEADGATE_TEST_MASTER", "local[2]")
    with Headgate(session("killed", master=master, conf=CONF), records=Path(folder) / "batches.jsonl") as hg:
        source = hg.readStream.format("headgate-kafka").option("kafka.bootstrap.servers", address)
        df = source.option("subscribe", topic).option("startingOffsets", "earliest").load()
        writer = df.writeStream.queryName("killed").option("checkpointLocation", f"{folder}/checkpoint")
        writer = writer.foreachBatch(keep)
        if drain:
            writer = writer.trigger(availableNow=True)
        query = hg.start(writer, deadline="1s")
        (Path(folder) / f"started-{os.getpid()}").touch()
        query.awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:4], drain=sys.argv[4:] == ["drain"])
