"""Saving and restoring in fragments against a single-stream copy, at equal bandwidth per place (Figs 20 to 22)."""

from __future__ import annotations

import shutil
import statistics
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from headgate.bench.race import Say
from headgate.bench.state.checkpoints import make_checkpoint
from headgate.bench.state.coding import milliseconds
from headgate.bench.state.programme import MB, Programme, Results
from headgate.bench.state.throttled import ThrottledStore
from headgate.state.catalog import Catalog
from headgate.state.code import Code
from headgate.state.folder import LocalFolder
from headgate.state.keys import Line
from headgate.state.places import Places
from headgate.state.restoring import restore
from headgate.state.saving import Saver
from headgate.state.snapshot import look
from headgate.state.stores.folder import FolderStore
from headgate.state.stores.port import FragmentStore
from headgate.state.tags import Keys

KEYS = Keys("a key for measurements")
PIECE_BYTES = 1 << 20


@contextmanager
def _workbench() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="headgate-state-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def at_size(programme: Programme, size_mb: int, say: Say) -> Results:
    result: Results = {"size_mb": size_mb, "save_s": [], "copy_s": [], "restore_s": [], "copy_back_s": []}
    for repeat in range(programme.repeats):
        with _workbench() as folder:
            checkpoint = make_checkpoint(folder / "checkpoint", size_mb * MB, seed=repeat)
            turns = [_fragments(folder, checkpoint, programme), _single_stream(folder, checkpoint, programme)]
            for turn in turns if repeat % 2 else reversed(turns):
                for name, seconds in turn():
                    result[name].append(seconds)
    say(
        f"{size_mb} MB: saved in {_mid(result['save_s'])} s (copy {_mid(result['copy_s'])}),"
        f" restored with {programme.lost} places lost in {_mid(result['restore_s'])} s"
        f" (copy {_mid(result['copy_back_s'])})"
    )
    return result


Turn = Callable[[], list[tuple[str, float]]]


def _fragments(folder: Path, checkpoint: Path, programme: Programme) -> Turn:
    def turn() -> list[tuple[str, float]]:
        code, line = Code(7, 3), Line("bench", "state")
        stores = _places(folder / "fragments", code.blocks, programme)
        saver = Saver(Places(stores), line, code, KEYS)
        save_s = _seconds(lambda: saver.save(LocalFolder(checkpoint)))
        left = Places(stores[programme.lost :])  # raw blocks are among the lost
        into = folder / "restored"

        def back() -> None:
            catalog = Catalog(left, line, KEYS)
            restore(catalog, catalog.choose(), str(into))

        restore_s = _seconds(back)
        _check_same(checkpoint, into)
        return [("save_s", save_s), ("restore_s", restore_s)]

    return turn


def _single_stream(folder: Path, checkpoint: Path, programme: Programme) -> Turn:
    """Every file, one after the other, to and from one place of the same bandwidth: how a checkpoint is copied."""

    def turn() -> list[tuple[str, float]]:
        store = _places(folder / "copy", 1, programme)[0]
        times = [
            ("copy_s", _seconds(lambda: _copy_there(checkpoint, store, "0"))),
            ("copy_back_s", _seconds(lambda: _copy_back(store, "0", folder / "copied"))),
        ]
        _check_same(checkpoint, folder / "copied")
        return times

    return turn


def _copy_there(checkpoint: Path, store: FragmentStore, name: str) -> None:
    snapshot = look(LocalFolder(checkpoint))
    assert snapshot is not None
    for path in snapshot.files:
        with (checkpoint / path).open("rb") as file:
            store.put(f"{name}/{path}", iter(lambda file=file: file.read(PIECE_BYTES), b""))  # type: ignore[misc]


def _copy_back(store: FragmentStore, name: str, into: Path) -> None:
    for key, length in store.find(name).items():
        where = into / key.removeprefix(f"{name}/")
        where.parent.mkdir(parents=True, exist_ok=True)
        with where.open("wb") as file:
            for start in range(0, length, PIECE_BYTES):
                file.write(store.get(key, start, start + PIECE_BYTES))


def together(programme: Programme, count: int, say: Say) -> Results:
    """Several instances restored at once, fragments and copies from the same places, those that are left."""
    result: Results = {"instances": count, "restore_s": [], "copy_back_s": []}
    for repeat in range(programme.repeats):
        with _workbench() as folder:
            instances = _Instances(folder, count, programme, seed=repeat * 100)
            turns = [("restore_s", instances.restore), ("copy_back_s", instances.copy_back)]
            for name, act in turns if repeat % 2 else reversed(turns):
                result[name].append(_seconds_for_all(act, count))
            instances.check()
    say(f"{count} instances: {_mid(result['restore_s'])} s (copies {_mid(result['copy_back_s'])})")
    return result


class _Instances:
    """Checkpoints that were saved in fragments, and copied as a whole to one place each, in turn."""

    def __init__(self, folder: Path, count: int, programme: Programme, seed: int) -> None:
        self._folder, size = folder, programme.instance_mb * MB
        self._checkpoints = [make_checkpoint(folder / f"checkpoint-{n}", size, seed + n) for n in range(count)]
        stores = _places(folder / "places", Code().blocks, programme)
        self._left = stores[programme.lost :]
        unlimited = Places([store.unlimited for store in stores])
        for number, checkpoint in enumerate(self._checkpoints):
            Saver(unlimited, self._line(number), Code(), KEYS).save(LocalFolder(checkpoint))
            _copy_there(checkpoint, self._place_of(number).unlimited, f"copy-{number}")

    def restore(self, number: int) -> None:
        catalog = Catalog(Places(self._left), self._line(number), KEYS)
        restore(catalog, catalog.choose(), str(self._folder / f"restored-{number}"))

    def copy_back(self, number: int) -> None:
        _copy_back(self._place_of(number), f"copy-{number}", self._folder / f"copied-{number}")

    def check(self) -> None:
        for number, checkpoint in enumerate(self._checkpoints):
            _check_same(checkpoint, self._folder / f"restored-{number}")
            _check_same(checkpoint, self._folder / f"copied-{number}")

    def _line(self, number: int) -> Line:
        return Line("bench", "state", str(number))

    def _place_of(self, number: int) -> ThrottledStore:
        return self._left[number % len(self._left)]


def _places(folder: Path, count: int, programme: Programme) -> list[ThrottledStore]:
    bytes_per_s = programme.bandwidth_mb_s * MB
    return [ThrottledStore(FolderStore(folder / str(number)), bytes_per_s) for number in range(count)]


def _paths(folder: Path) -> list[str]:
    return [str(path.relative_to(folder)) for path in sorted(folder.rglob("*")) if path.is_file()]


def _check_same(one: Path, other: Path) -> None:
    """A measurement of something that does not work is worth nothing."""
    paths = _paths(one)
    if paths != _paths(other) or any((one / path).read_bytes() != (other / path).read_bytes() for path in paths):
        raise AssertionError(f"{other} is not {one}")


def _seconds(act: Callable[[], object]) -> float:
    return milliseconds(act) / 1000


def _seconds_for_all(act: Callable[[int], None], count: int) -> float:
    with ThreadPoolExecutor(count) as pool:
        return _seconds(lambda: list(pool.map(act, range(count))))


def _mid(values: list[float]) -> str:
    return f"{statistics.median(values):.2f}"
