"""Exactly once: drivers are killed at random moments, also inside commits, and the sink is the input, record by record.

HEADGATE_KILLS=30 kills more often than the regular run does.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from headgate.bench.kafka.broker import LocalBroker
from tests.kafka_jars import jars_or_skip

pytestmark = [pytest.mark.e2e, pytest.mark.kafka]

KILLS = int(os.environ.get("HEADGATE_KILLS", "4"))
PARTITIONS = 3


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[LocalBroker]:
    jars_or_skip()
    with LocalBroker(tmp_path / "kafka") as made:
        yield made


class Flow:
    """Numbered records at a steady pace until it is stopped."""

    def __init__(self, address: str, topic: str) -> None:
        from confluent_kafka import Producer
        from confluent_kafka.admin import AdminClient, NewTopic

        admin = AdminClient({"bootstrap.servers": address, "log_level": 0})  # must outlive the answer
        for answer in admin.create_topics([NewTopic(topic, PARTITIONS, 1)]).values():
            answer.result()
        self._producer = Producer(
            {"bootstrap.servers": address, "linger.ms": 5, "enable.idempotence": True, "log_level": 0}
        )
        self._topic = topic
        self._stop = threading.Event()
        self.sent = 0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.wait(0.02):
            for _ in range(20):
                self._producer.produce(self._topic, value=str(self.sent), key=str(self.sent))
                self.sent += 1
            self._producer.poll(0)

    def stop(self) -> int:
        self._stop.set()
        self._thread.join()
        assert self._producer.flush(60) == 0
        return self.sent


def start(broker: LocalBroker, folder: Path, *words: str, master: str = "local[2]") -> subprocess.Popen[bytes]:
    with (folder / "driver.log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "tests.kafka_driver", broker.address, "numbers", str(folder), *words],
            env=os.environ | {"HEADGATE_TEST_MASTER": master},
            stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip


def kill_all(process: subprocess.Popen[bytes]) -> None:
    """Driver, JVM and Python workers at once, as a machine that loses its power."""
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def wait_for(folder: Path, process: subprocess.Popen[bytes], seconds: float = 120) -> None:
    give_up_s = time.monotonic() + seconds
    while not (folder / f"started-{process.pid}").exists():
        assert process.poll() is None, (folder / "driver.log").read_text()[-3000:]
        assert time.monotonic() < give_up_s, "the driver did not start"
        time.sleep(0.05)


def batches(folder: Path) -> int:
    return len(list((folder / "sink").glob("*.json")))


def until_batches(folder: Path, process: subprocess.Popen[bytes], count: int) -> None:
    give_up_s = time.monotonic() + 120
    while batches(folder) < count:
        assert process.poll() is None, (folder / "driver.log").read_text()[-3000:]
        assert time.monotonic() < give_up_s, "the query stands still"
        time.sleep(0.05)


def kept(folder: Path) -> list[list[Any]]:
    return [row for path in (folder / "sink").glob("*.json") for row in json.loads(path.read_text())]


def test_killed_drivers_lose_and_double_nothing(broker: LocalBroker, tmp_path: Path) -> None:
    chance, flow = random.Random(7), Flow(broker.address, "numbers")
    for turn in range(KILLS):
        process, before = start(broker, tmp_path), batches(tmp_path)
        wait_for(tmp_path, process)
        if turn % 2:  # in its start, or in its first batch, which takes a cold Spark several seconds
            time.sleep(chance.uniform(0.0, 9.0))
        else:  # in the middle of its work
            until_batches(tmp_path, process, before + chance.randint(2, 5))
            time.sleep(chance.uniform(0.0, 1.0))
        kill_all(process)
    check(broker, tmp_path, flow.stop())
    assert batches(tmp_path) > KILLS


def check(broker: LocalBroker, folder: Path, sent: int) -> None:
    """Read the rest, and compare the sink with the input."""
    assert start(broker, folder, "drain").wait(180) == 0, (folder / "driver.log").read_text()[-3000:]
    rows = kept(folder)
    assert sorted(int(value) for _, _, value in rows) == list(range(sent))
    by_partition = [sorted(offset for p, offset, _ in rows if p == number) for number in range(PARTITIONS)]
    assert all(offsets == list(range(len(offsets))) for offsets in by_partition)


def executors() -> list[psutil.Process]:
    """Spark's executors on this machine, each a JVM of its own."""
    found = psutil.process_iter(["cmdline"])
    return [each for each in found if "CoarseGrainedExecutorBackend" in " ".join(each.info["cmdline"] or [])]


def test_killed_executors_lose_and_double_nothing(broker: LocalBroker, master: str, tmp_path: Path) -> None:
    flow = Flow(broker.address, "numbers")
    process = start(broker, tmp_path, master=master)
    wait_for(tmp_path, process)
    for _ in range(2):
        until_batches(tmp_path, process, batches(tmp_path) + 3)
        executors()[0].kill()
    time.sleep(5)
    assert process.poll() is None, (tmp_path / "driver.log").read_text()[-3000:]
    kill_all(process)
    check(broker, tmp_path, flow.stop())
