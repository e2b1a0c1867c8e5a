"""A run's traffic: a topic of its own, a process that fills it, and when each record came."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import uuid
from dataclasses import asdict
from itertools import cycle
from pathlib import Path

import numpy as np

from headgate.bench.hone.latency import FloatArray
from headgate.bench.hone.sentences import sentences
from headgate.bench.hone.skew import PARTITIONS, Traffic
from headgate.bench.kafka import topics
from headgate.errors import HeadgateError

READ_S = 120.0
"""A broker on the same machine gives millions of records in that time."""

CHUNK = 10_000


class SentenceFlow:
    """A topic that nothing is in yet."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.topic = f"sentences-{uuid.uuid4().hex[:12]}"
        self._feeder: subprocess.Popen[str] | None = None
        topics.create(address, self.topic, PARTITIONS)

    def fill(self, count: int, max_words: int, seed: int = 1) -> None:
        """Sentences at once, as many in each partition."""
        made, texts = topics.producer(self.address), cycle(sentences(min(count, CHUNK), max_words, seed))
        for number in range(count):
            topics.send(made, self.topic, next(texts), number % PARTITIONS)
        made.flush()

    def start(self, traffic: Traffic, folder: Path) -> float:
        """Let the traffic begin; returns when that was."""
        setting = folder / f"{self.topic}.json"
        setting.write_text(json.dumps({"address": self.address, "topic": self.topic, "traffic": asdict(traffic)}))
        command = [sys.executable, "-m", "headgate.bench.hone.feeder", str(setting)]
        self._feeder = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._feeder.stdout is not None
        line = self._feeder.stdout.readline()
        if not line:
            raise HeadgateError(f"the feeder of {self.topic} ended with code {self._feeder.wait()}")
        return float(line)

    def stop(self) -> None:
        """No more records."""
        if self._feeder is not None:
            self._feeder.terminate()
            self._feeder.wait()
            assert self._feeder.stdout is not None
            self._feeder.stdout.close()
            self._feeder = None

    def delete(self) -> None:
        topics.delete(self.address, self.topic)

    def stamps_s(self) -> list[FloatArray]:
        """The broker's timestamp of every record, by partition and offset, read from the topic itself."""
        from confluent_kafka import Consumer, TopicPartition

        consumer = Consumer(
            {"bootstrap.servers": self.address, "group.id": "headgate-hone", "enable.auto.commit": False}
        )
        places = [TopicPartition(self.topic, partition, 0) for partition in range(PARTITIONS)]
        counts = [consumer.get_watermark_offsets(place, timeout=READ_S)[1] for place in places]
        stamps_ms = [np.zeros(count) for count in counts]
        consumer.assign(places)
        left, give_up_s = sum(counts), time.monotonic() + READ_S
        while left > 0 and time.monotonic() < give_up_s:
            records = consumer.consume(CHUNK, timeout=1.0)
            for record in records:
                stamps_ms[record.partition()][record.offset()] = record.timestamp()[1]
            left -= len(records)
        consumer.close()
        if left > 0:
            raise HeadgateError(f"{left:,} records of {self.topic} could not be read within {READ_S:g} s")
        return [stamps / 1000 for stamps in stamps_ms]
