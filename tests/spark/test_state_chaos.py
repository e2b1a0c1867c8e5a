"""Queries and their backups die at random moments, checkpoints and up to c places are lost; results are exact.

HEADGATE_ROUNDS=50 does it more often than the regular run does. (tests/e2e has the same with whole drivers killed.)
"""

from __future__ import annotations

import os
import random
import shutil
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate.errors import HeadgateError
from headgate.state.catalog import Catalog
from headgate.state.code import Code
from headgate.state.folder import LocalFolder
from headgate.state.keys import Line
from headgate.state.places import Places
from headgate.state.repairing import examine, packs_of, repair
from headgate.state.restoring import restore
from headgate.state.saving import Saver
from headgate.state.stores.folder import FolderStore
from headgate.state.tags import Keys
from tests.checkpoints import CanGoDown
from tests.spark.conftest import until
from tests.spark.test_state_backup import (
    COMMON,
    KEYS,
    ROWS,
    STORES,
    Sink,
    settings,
    several_operators,
    source,
    write_file,
)

pytestmark = pytest.mark.spark

ROUNDS = int(os.environ.get("HEADGATE_ROUNDS", "4"))
LINE, SECRET, CODE = Line("chaos", "query"), Keys("a secret key"), Code(4, 2)


class MortalStore(CanGoDown, FolderStore):
    """Out of reach from the moment on in which its user dies."""


class DyingWriter:
    """Saves as fast as it can until it dies."""

    def __init__(self, places: list[Path], checkpoint: Path) -> None:
        self._stores = [MortalStore(place) for place in places]
        self._checkpoint = checkpoint
        self.saved = 0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def die(self) -> None:
        for store in self._stores:
            store.down = True
        self._thread.join()

    def _run(self) -> None:
        with suppress(HeadgateError, OSError):
            saver = Saver(Places(self._stores), LINE, CODE, SECRET, keep=2)
            while not self._stores[0].down:
                if self._checkpoint.is_dir():
                    self.saved += saver.save(LocalFolder(self._checkpoint)) is not None
                time.sleep(0.01)


def test_nothing_is_lost_whatever_dies(spark: SparkSession, tmp_path: Path) -> None:
    chance, sink, folder = random.Random(5), Sink(), tmp_path / "in"
    folder.mkdir()
    places = [tmp_path / f"place-{number}" for number in range(CODE.blocks)]
    checkpoint, files, hurt, restored = tmp_path / "checkpoint-0", 0, set[Path](), 0
    with settings(spark, COMMON | STORES["changelog"]):
        for turn in range(ROUNDS):
            writer = DyingWriter(places, checkpoint)
            query = several_operators(source(spark, folder)).foreachBatch(sink)
            running = query.option("checkpointLocation", str(checkpoint)).start()
            for _ in range(chance.randint(1, 5)):
                before = len(sink.batches)
                write_file(folder, files)
                files += 1
                until(lambda before=before, run=running: len(sink.batches) > before or not run.isActive)  # type: ignore[misc]
            time.sleep(chance.uniform(0.0, 0.3))
            order = [writer.die, running.stop]
            for end in order if chance.random() < 0.5 else reversed(order):
                end()
            assert running.exception() is None
            if writer.saved:
                hurt.clear()  # a backup that was completed bears c losses, whatever was lost before it
            shutil.rmtree(checkpoint, ignore_errors=True)  # a task that was cancelled may still write something
            for place in chance.sample(places, chance.randint(0, CODE.check)):
                if len(hurt | {place}) <= CODE.check:
                    shutil.rmtree(place, ignore_errors=True)
                    hurt.add(place)
            checkpoint = tmp_path / f"checkpoint-{turn + 1}"
            restored += _come_back(places, checkpoint, sink)
            if chance.random() < 0.5:
                _repair(places)
                hurt.clear()
        final = several_operators(source(spark, folder)).foreachBatch(sink)
        running = final.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
        assert running.awaitTermination(120)
    assert restored >= ROUNDS - 1
    assert sink.newest_by_key() == _expected(files)


def _come_back(places: list[Path], into: Path, sink: Sink) -> bool:
    """From what is left; nothing at all only before the first backup was completed."""
    catalog = Catalog(Places([FolderStore(place) for place in places]), LINE, SECRET)
    if not catalog.ids:
        sink.back_to(-1)
        return False
    manifest = catalog.choose()
    restore(catalog, manifest, str(into))
    sink.back_to(manifest.batch)
    return True


def _repair(places: list[Path]) -> None:
    catalog = Catalog(Places([FolderStore(place) for place in places]), LINE, SECRET)
    assert not repair(catalog, examine(catalog, packs_of(catalog.manifests()))).failed


def _expected(files: int) -> dict[int, tuple[int, int, int]]:
    rows = [((number * 7 + row) % KEYS, number * ROWS + row) for number in range(files) for row in range(ROWS)]
    found: dict[int, tuple[int, int, int]] = {}
    for key, value in rows:
        _, count, total = found.get(key, (key, 0, 0))
        found[key] = (key, count + 1, total + value)
    return found
