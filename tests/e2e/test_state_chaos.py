"""Machines are lost: the driver is killed, its checkpoint is gone, and with it up to c of the places. Nothing is lost.

HEADGATE_ROUNDS=50 does it more often than the regular run does.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import defaultdict
from pathlib import Path

import pytest

from headgate.cli.main import main as headgate
from headgate.errors import StateError
from tests.state_driver import CODE, QUERY, backup_at

pytestmark = pytest.mark.e2e

ROUNDS = int(os.environ.get("HEADGATE_ROUNDS", "1"))
ROWS, KEYS = 200, 40


class Feeder:
    """Writes files at a steady pace until it is stopped."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._folder, self.files = folder, 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.wait(0.25):
            hidden = self._folder / f".{self.files:06d}.json"
            hidden.write_text("".join(json.dumps(row) + "\n" for row in rows_of(self.files)))
            os.rename(hidden, self._folder / f"{self.files:06d}.json")
            self.files += 1

    def stop(self) -> int:
        self._stop.set()
        self._thread.join()
        return self.files


def rows_of(file: int) -> list[dict[str, object]]:
    return [{"k": (file * 7 + n) % KEYS, "v": file * ROWS + n, "t": "2026-01-01 00:00:00"} for n in range(ROWS)]


def expected(files: int) -> dict[int, list[int]]:
    found: dict[int, list[int]] = defaultdict(lambda: [0, 0])
    for number in range(files * ROWS):
        file, n = divmod(number, ROWS)
        entry = found[(file * 7 + n) % KEYS]
        entry[0] += 1
        entry[1] += number
    return dict(found)


class Machine:
    """What one driver has: its checkpoint, which is lost with it."""

    def __init__(self, root: Path) -> None:
        self.root, self.sink = root, root / "sink"
        self.places = [root / "places" / str(number) for number in range(CODE.blocks)]
        self.place_file, self.key_file = root / "places.txt", root / "key"
        self.place_file.write_text("\n".join(str(place) for place in self.places))
        self.key_file.write_text("a secret key")
        self.generation = 0

    @property
    def checkpoint(self) -> Path:
        return self.root / f"checkpoint-{self.generation}"

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        names = [self.root / "in", self.checkpoint, self.sink, self.place_file, self.key_file]
        with (self.root / "driver.log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "tests.state_driver", *map(str, names), *words],
                stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip

    def batches(self) -> list[int]:
        return sorted(int(path.stem) for path in self.sink.glob("*.json"))

    def until_batches(self, process: subprocess.Popen[bytes], count: int) -> None:
        give_up_s = time.monotonic() + 120
        while len(self.batches()) < count:
            assert process.poll() is None, self.log()
            assert time.monotonic() < give_up_s, "the query stands still"
            time.sleep(0.05)

    def lose(self, process: subprocess.Popen[bytes], places: list[Path]) -> None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        shutil.rmtree(self.checkpoint, ignore_errors=True)
        for place in places:
            shutil.rmtree(place, ignore_errors=True)

    def come_back(self) -> int | None:
        """Restore on a new machine, mend the places, and take the sink back to the restored batch."""
        self.generation += 1
        backup = backup_at(self.place_file, self.key_file)
        try:
            batch = backup.restore(QUERY, str(self.checkpoint)).batch
        except StateError as error:
            if "no backup can be read" not in str(error):
                raise
            batch = -1  # it was killed before its first backup: begin again
        for path in self.sink.glob("*.json"):
            if int(path.stem) > batch:
                path.unlink()
        if batch < 0:
            return None
        where = ["--places", str(self.place_file), "--key-file", str(self.key_file), "--query", QUERY]
        assert headgate(["state", "repair", *where]) == 0
        return batch

    def results(self) -> dict[int, list[int]]:
        found = {}
        for batch in self.batches():
            for key, count, total in json.loads((self.sink / f"{batch}.json").read_text()):
                found[key] = [count, total]
        return found

    def log(self) -> str:
        return (self.root / "driver.log").read_text()[-3000:]


def test_lost_machines_lose_nothing(tmp_path: Path) -> None:
    chance, machine, feeder = random.Random(11), Machine(tmp_path), Feeder(tmp_path / "in")
    restored = 0
    for _ in range(ROUNDS):
        before, process = len(machine.batches()), machine.start()
        machine.until_batches(process, before + chance.randint(1, 6))
        time.sleep(chance.uniform(0.0, 1.5))
        machine.lose(process, chance.sample(machine.places, chance.randint(0, CODE.check)))
        restored += machine.come_back() is not None
    assert restored >= ROUNDS - 1  # a driver may die before its first backup
    files = feeder.stop()
    assert machine.start("drain").wait(180) == 0, machine.log()
    assert machine.results() == expected(files)
