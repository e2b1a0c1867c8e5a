"""Sends sentences to a topic when they are due: ``python -m headgate.bench.hone.feeder SETTING.json``.

A process of its own, because a driver that also produces would not be the driver that is measured. It prints the moment
from which its times count, and ends when everything is sent.
"""

from __future__ import annotations

import json
import sys
import time
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

from headgate.bench.hone.sentences import sentences
from headgate.bench.hone.skew import Traffic
from headgate.bench.kafka.topics import producer, send

STEP_S = 0.05
"""Records are sent in steps of this: short against a batch. Shorter ones make more and smaller requests, which took a
quarter of the machine from those who are measured."""

DIFFERENT = 20_000
"""Sentences that come again and again: making new ones while sending would take CPU from those who are measured."""


def main(setting: dict[str, Any]) -> None:
    traffic = Traffic(**setting["traffic"])
    due_s, partitions = in_order(traffic.stamps_s())
    texts = cycle(sentences(DIFFERENT, traffic.max_words, traffic.seed))
    made, sent = producer(setting["address"]), 0
    origin_s = time.time()
    print(origin_s, flush=True)
    while sent < len(due_s):
        due = int(np.searchsorted(due_s, time.time() - origin_s, side="right"))
        for partition in partitions[sent:due].tolist():
            send(made, setting["topic"], next(texts), partition)
        sent = due
        made.poll(0)
        time.sleep(STEP_S)
    made.flush()


def in_order(stamps_s: list[np.ndarray[Any, Any]]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """All records by the time they are due, and the partition of each."""
    due_s = np.concatenate(stamps_s)
    partitions = np.repeat(np.arange(len(stamps_s)), [len(stamps) for stamps in stamps_s])
    order = np.argsort(due_s, kind="stable")
    return due_s[order], partitions[order]


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text()))
