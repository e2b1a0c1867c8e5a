"""The same on a Spark standalone cluster: a master and two workers as processes of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.e2e

DRIVER = """
import json, sys, time
from headgate import Headgate, session

master, out = sys.argv[1:]
conf = {"spark.executor.cores": "1", "spark.executor.memory": "1g", "spark.cores.max": "2", "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1", "spark.sql.shuffle.partitions": "2"}
spark = session("cluster", master=master, conf=conf)
rows = {}
with Headgate(spark, records=out + ".jsonl") as hg:
    def numbers(name, deadline, rows_):
        source = hg.readStream.format("headgate-trace").option("rate", "250").option("rows", str(rows_)).load()
        def keep(df, batch):
            rows.setdefault(name, {})[batch] = [row.value for row in df.select("value").collect()]
        return hg.start(source.writeStream.queryName(name).foreachBatch(keep), deadline=deadline)
    queries = [numbers("tight", "2s", 10000), numbers("relaxed", "6s", 10000)]
    end = time.time() + 150
    while time.time() < end and any(sum(map(len, rows.get(q.name, {}).values())) < 10000 for q in queries):
        time.sleep(0.2)
    time.sleep(1)
    result = {q.name: {"values": sorted(v for b in rows[q.name].values() for v in b), "batches": len(rows[q.name]),
                       "codes": dict(q.summary.codes)} for q in queries}
    result["executors"] = spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1
json.dump(result, open(out, "w"))
spark.stop()
"""


def test_two_queries_keep_exactly_once_on_a_cluster(master: str, tmp_path: Path) -> None:
    driver = tmp_path / "driver.py"
    driver.write_text(DRIVER)
    out = tmp_path / "result.json"
    done = subprocess.run([sys.executable, str(driver), master, str(out)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    result = json.loads(out.read_text())
    assert result["executors"] == 2
    for query in ("tight", "relaxed"):
        assert result[query]["values"] == list(range(10000))
        assert set(result[query]["codes"]) - {"learning"}, "no batch was decided by the model"
