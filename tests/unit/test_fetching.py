"""Restores do not wait for the slowest place, and large packs pass through little memory."""

from __future__ import annotations

import subprocess
import sys
import threading
import tracemalloc
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

from headgate.bench.state.checkpoints import make_checkpoint
from headgate.state.catalog import Catalog, TooFewBlocks
from headgate.state.code import Code
from headgate.state.folder import LocalFolder
from headgate.state.keys import Line
from headgate.state.places import Places
from headgate.state.restoring import restore
from headgate.state.saving import Saver
from headgate.state.stores.folder import FolderStore
from headgate.state.stores.memory import MemoryStore
from headgate.state.stores.peer import PeerStore
from headgate.state.stores.port import Chunk
from headgate.state.tags import Keys
from tests.checkpoints import contents

LINE, KEYS = Line("shop", "orders"), Keys()
CODE = Code(4, 2)


class HangingStore(MemoryStore):
    """After `answers` reads of fragments it does not answer any more, until it is let go."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.answers = 10**9
        self.let_go = threading.Event()

    def get(self, key: str, start: int = 0, end: int | None = None) -> bytes:
        if key.endswith(".fragment"):
            self.answers -= 1
            if self.answers < 0:
                self.let_go.wait()
        return super().get(key, start, end)


def test_places_that_hang_are_not_waited_for(tmp_path: Path) -> None:
    checkpoint = make_checkpoint(tmp_path / "checkpoint", 40_000)
    stores = [HangingStore(f"place-{number}") for number in range(CODE.blocks)]
    places = Places(stores)
    Saver(places, LINE, CODE, KEYS, cell=512).save(LocalFolder(checkpoint))
    stores[0].answers, stores[3].answers = 0, 2  # one from the beginning, one in the middle
    try:
        catalog = Catalog(places, LINE, KEYS)
        restore(catalog, catalog.choose(), str(tmp_path / "restored"))
    finally:
        for store in stores:
            store.let_go.set()
    assert contents(tmp_path / "restored") == contents(checkpoint)


def test_if_nothing_comes_at_all_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headgate.state.fetching.STALLED_S", 0.3)
    stores = [HangingStore(f"place-{number}") for number in range(CODE.blocks)]
    places = Places(stores)
    Saver(places, LINE, CODE, KEYS).save(LocalFolder(make_checkpoint(tmp_path / "checkpoint", 1_000)))
    for store in stores:
        store.answers = 0
    try:
        catalog = Catalog(places, LINE, KEYS)
        with pytest.raises(TooFewBlocks, match=r"nothing came for 0.3 s; 4 blocks are needed, 6 of 6 were there"):
            restore(catalog, catalog.choose(), str(tmp_path / "restored"))
    finally:
        for store in stores:
            store.let_go.set()
    assert not (tmp_path / "restored").exists()


def test_a_place_that_takes_nothing_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its queue is full while the others wait; then the backup is completed without it."""
    monkeypatch.setattr("headgate.state.packing.STALLED_S", 0.3)
    let_go, stores = threading.Event(), [MemoryStore(f"place-{number}") for number in range(CODE.blocks)]
    put = stores[2].put

    def hang(key: str, chunks: Iterable[Chunk]) -> None:
        if key.endswith(".fragment"):
            let_go.wait()
        put(key, chunks)

    monkeypatch.setattr(stores[2], "put", hang)
    checkpoint, places = make_checkpoint(tmp_path / "checkpoint", 40_000), Places(stores)
    try:
        saved = Saver(places, LINE, CODE, KEYS, cell=512).save(LocalFolder(checkpoint))
    finally:
        let_go.set()
    assert saved is not None and saved.stored == 5 and "took nothing for 0.3 s" in saved.failed["place-2"]
    catalog = Catalog(places, LINE, KEYS)
    restore(catalog, catalog.choose(), str(tmp_path / "restored"))
    assert contents(tmp_path / "restored") == contents(checkpoint)


def test_only_the_stripes_that_hold_wanted_files_are_read(tmp_path: Path) -> None:
    """Of a pack whose other files are not needed any more."""
    reads: list[str] = []

    class CountingStore(MemoryStore):
        def get(self, key: str, start: int = 0, end: int | None = None) -> bytes:
            if key.endswith(".fragment"):
                reads.append(f"{start}-{end}")
            return super().get(key, start, end)

    checkpoint = make_checkpoint(tmp_path / "checkpoint", 100_000)
    places = Places([CountingStore(f"place-{number}") for number in range(CODE.blocks)])
    Saver(places, LINE, CODE, KEYS, cell=256).save(LocalFolder(checkpoint))
    catalog = Catalog(places, LINE, KEYS)
    manifest = catalog.choose()
    small = tuple(file for file in manifest.files if not file.path.startswith("state"))
    assert small
    restore(catalog, type(manifest)(LINE, manifest.id, 0.0, small, manifest.packs), str(tmp_path / "restored"))
    assert len(reads) < 6 * CODE.raw
    assert set(contents(tmp_path / "restored")) == {file.path for file in small}


def test_memory_is_bounded(tmp_path: Path) -> None:
    """48 MB pass through; what is held is a few cells for every place, not the state."""
    checkpoint = make_checkpoint(tmp_path / "checkpoint", 48_000_000)
    places = Places([FolderStore(tmp_path / f"place-{number}") for number in range(CODE.blocks)])
    cell = 1 << 16
    tracemalloc.start()
    try:
        Saver(places, LINE, CODE, KEYS, cell=cell).save(LocalFolder(checkpoint))
        saving = tracemalloc.get_traced_memory()[1]
        tracemalloc.reset_peak()
        catalog = Catalog(places, LINE, KEYS)
        restore(catalog, catalog.choose(), str(tmp_path / "restored"))
        restoring = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert saving < 12 * CODE.blocks * cell
    assert restoring < 24 * CODE.blocks * cell
    assert contents(tmp_path / "restored") == contents(checkpoint)


def test_the_server_as_a_process(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("a shared secret")
    command = [sys.executable, "-m", "headgate", "state", "serve", str(tmp_path / "kept"), "--port", "0"]
    with subprocess.Popen([*command, "--key-file", str(key)], stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            url = server.stdout.readline().rsplit(" ", 1)[-1].strip()
            peer = PeerStore(url, Keys("a shared secret").peers)
            content = np.random.default_rng(0).bytes(100_000)
            peer.put("a/b", [content])
            assert peer.get("a/b", 10, 20_000) == content[10:20_000]
            assert [path.name for path in (tmp_path / "kept").rglob("*") if path.is_file()] == ["b"]
        finally:
            server.terminate()
