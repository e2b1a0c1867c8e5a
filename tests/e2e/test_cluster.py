"""The same on a Spark standalone cluster: a master and two workers as processes of their own."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pyspark
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


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def master(tmp_path: Path) -> Iterator[str]:
    home = Path(pyspark.__file__).parent
    port, web = free_port(), free_port()
    environment = os.environ | {
        "SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_MEMORY": "384m",
        "PYSPARK_PYTHON": sys.executable, "SPARK_NO_DAEMONIZE": "1",
    }  # fmt: skip
    command = [str(home / "bin" / "spark-class")]
    address = f"spark://127.0.0.1:{port}"
    begin = [
        [
            *command,
            "org.apache.spark.deploy.master.Master",
            "--host",
            "127.0.0.1",
            "--port",
            str(port),
            "--webui-port",
            str(web),
        ]
    ]
    for index in range(2):
        work = [
            "--host",
            "127.0.0.1",
            "--cores",
            "1",
            "--memory",
            "1500m",
            "--work-dir",
            str(tmp_path / f"work{index}"),
            address,
        ]
        begin.append([*command, "org.apache.spark.deploy.worker.Worker", *work])
    processes = []
    try:
        for number, arguments in enumerate(begin):
            log = (tmp_path / f"daemon{number}.log").open("w")
            processes.append(subprocess.Popen(arguments, env=environment, stdout=log, stderr=log))
            time.sleep(3 if number == 0 else 0)
        wait_for_workers(web)
        yield address
    finally:
        for process in reversed(processes):
            process.terminate()
        for process in processes:
            process.wait(timeout=20)


def wait_for_workers(web: int) -> None:
    give_up_s = time.monotonic() + 60
    while time.monotonic() < give_up_s:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{web}/json/", timeout=2) as page:
                if page.read().decode().count('"ALIVE"') >= 2:
                    return
        except OSError:
            pass  # not up yet
        time.sleep(0.5)
    raise AssertionError("the workers did not come up")


def test_two_queries_keep_exactly_once_on_a_cluster(master: str, tmp_path: Path) -> None:
    import json

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
