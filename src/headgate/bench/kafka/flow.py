"""A cell's traffic through Kafka: a topic of its own and a process that fills it."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import uuid
from pathlib import Path

from headgate.bench.kafka import topics
from headgate.bench.kafka.feeder import PARTITIONS


class KafkaFlow:
    """From its making until `stop`, reports at `rate` go into `topic`."""

    def __init__(self, address: str, rate: str, seed: int, folder: Path) -> None:
        self.address = address
        self.topic = f"reports-{uuid.uuid4().hex[:12]}"
        self.origin_s = time.time()
        topics.create(address, self.topic, PARTITIONS)
        setting = folder / f"{self.topic}.json"
        setting.write_text(
            json.dumps({"address": address, "topic": self.topic, "rate": rate, "seed": seed, "origin_s": self.origin_s})
        )
        self._feeder = subprocess.Popen([sys.executable, "-m", "headgate.bench.kafka.feeder", str(setting)])

    @property
    def pid(self) -> int:
        return self._feeder.pid

    @property
    def alive(self) -> bool:
        return self._feeder.poll() is None

    def stop(self) -> None:
        self._feeder.terminate()
        self._feeder.wait()
        topics.delete(self.address, self.topic)
