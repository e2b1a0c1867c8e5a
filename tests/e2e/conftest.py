"""A Spark standalone cluster for tests: a master and two workers as processes of their own."""

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
