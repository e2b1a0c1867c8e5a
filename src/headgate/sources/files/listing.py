"""Find files that are not known yet, in a folder or behind a glob, for little time per look."""

from __future__ import annotations

import fnmatch
import os
import re
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from datetime import UTC, datetime
from typing import Any, NamedTuple, Protocol

from fsspec.core import url_to_fs
from fsspec.implementations.local import LocalFileSystem

from headgate.errors import BadParameter

SETTLED_AFTER_S = 2.0
"""A folder's time of change is trusted once it is this old: coarse clocks give two changes the same time."""

RELIST_AFTER_S = 10.0
"""The folder is walked at least this often, in case its time of change cannot be trusted after all."""

_BRACES = re.compile(r"\{([^{}]*)\}")
_MAGIC = re.compile(r"[*?\[]")
_IGNORED_ENDINGS = (".tmp", "._COPYING_", ".crdownload")
_MODIFIED_KEYS = ("mtime", "LastModified", "last_modified", "updated", "modified", "created")
"""Each filesystem of fsspec has its own name for the time of change; the first that is there counts."""

Stopwatch = Callable[[], float]
Matcher = Callable[[str], object]


class FoundFile(NamedTuple):
    """A file as the listing shows it."""

    path: str
    size_bytes: int
    modified_s: float


class Listing(Protocol):
    """Looks for new files; `cost_s` is what the last look took, without examining what it found."""

    cost_s: float
    only_folders: bool
    """Whether the last look found nothing in a folder but more folders, which are not opened."""

    def new_files(self, known: AbstractSet[str], now_s: float) -> list[FoundFile]:
        """Files that are not in `known`, in no order. Empty files wait until something is in them."""


def listing_of(url: str, names: str | None = None, stopwatch: Stopwatch = time.perf_counter) -> Listing:
    """The listing for a folder or glob; a local folder must exist, because a typing error would look like silence.

    :param names: a glob that names of files must match, wherever they are found (Spark's ``pathGlobFilter``).
    """
    wanted = _matcher(names)
    fs, path = url_to_fs(url)
    path = path.rstrip("/") or "/"
    literal = fs.isdir(path) or not _MAGIC.search(path)
    if not isinstance(fs, LocalFileSystem):
        return FsspecListing(fs, path, literal, wanted, stopwatch)
    folder, _, pattern = (path, "", None) if literal else path.rpartition("/")
    if not literal and (_MAGIC.search(folder) or "**" in path):
        return FsspecListing(fs, path, literal, wanted, stopwatch)
    if not os.path.isdir(folder or "/"):
        raise BadParameter("path", url, "there is no such folder", "create it, or correct the path")
    return LocalListing(folder or "/", pattern, wanted, stopwatch)


def ignored(name: str) -> bool:
    """Whether a file or folder is hidden, or not finished yet, by its name."""
    return name.startswith(("_", ".")) or name.endswith(_IGNORED_ENDINGS)


def _matcher(names: str | None) -> Matcher:
    """Whether a name matches a glob, which may have alternatives in braces, as Hadoop's have."""
    if names is None:
        return lambda name: True
    globs = [glob.replace("[^", "[!") for glob in _alternatives(names)]
    return re.compile("|".join(map(fnmatch.translate, globs))).match


def _alternatives(glob: str) -> list[str]:
    if not (braces := _BRACES.search(glob)):
        return [glob]
    before, after = glob[: braces.start()], glob[braces.end() :]
    return [each for choice in braces[1].split(",") for each in _alternatives(before + choice + after)]


class LocalListing:
    """One local folder, perhaps with a pattern for the names in it; folders that match the pattern are opened.

    A known name costs a set look-up, not a stat. When nothing has changed, the folder's own time of change says so
    and the walk is saved; but only where that time was seen to move when a file arrived, because some network
    filesystems do not keep it.
    """

    def __init__(
        self,
        folder: str,
        pattern: str | None = None,
        wanted: Matcher = lambda name: True,
        stopwatch: Stopwatch = time.perf_counter,
    ) -> None:
        self.cost_s = 0.0
        self.only_folders = False
        self._folder = folder
        self._wanted = wanted
        self._matches = re.compile(fnmatch.translate(pattern)).match if pattern else None
        self._stopwatch = stopwatch
        self._changed_ns = -1
        self._walked_at_s = -RELIST_AFTER_S
        self._keeps_time = False
        self._settled = False

    def new_files(self, known: AbstractSet[str], now_s: float) -> list[FoundFile]:
        began_s = self._stopwatch()
        try:
            # Read before the walk: a file that comes while we walk then shows as a change at the next look.
            changed_ns = os.stat(self._folder).st_mtime_ns
            unknown = None if self._unchanged(changed_ns, now_s) else self._walk(known)
        except FileNotFoundError:  # the folder was there once: perhaps it is being replaced
            return []
        self.cost_s = self._stopwatch() - began_s
        return [] if unknown is None else self._examine(unknown, changed_ns, now_s)

    def _unchanged(self, changed_ns: int, now_s: float) -> bool:
        recent = 0 <= now_s - self._walked_at_s < RELIST_AFTER_S
        return recent and self._keeps_time and self._settled and changed_ns == self._changed_ns

    def _walk(self, known: AbstractSet[str]) -> list[os.DirEntry[str]]:
        unknown = _unknown(self._folder, known)
        if self._matches is None:
            files = [entry for entry in unknown if not entry.is_dir()]
            self.only_folders = bool(unknown) and not files
            return [entry for entry in files if self._wanted(entry.name)]
        matching = [entry for entry in unknown if self._matches(entry.name)]
        inside = [_unknown(entry.path, known) for entry in matching if entry.is_dir()]
        found = matching + [entry for entries in inside for entry in entries]
        return [entry for entry in found if self._wanted(entry.name) or entry.is_dir()]

    def _examine(self, unknown: list[os.DirEntry[str]], changed_ns: int, now_s: float) -> list[FoundFile]:
        found = [file for file in map(_examined, unknown) if file]
        if found and self._changed_ns >= 0:
            self._keeps_time = changed_ns != self._changed_ns
        # Something that is no file yet may become one without a change of the folder: it may be filled, or a
        # subfolder may get a file.
        self._settled = changed_ns / 1e9 < now_s - SETTLED_AFTER_S and len(found) == len(unknown)
        self._changed_ns = changed_ns
        self._walked_at_s = now_s
        return found


def _unknown(folder: str, known: AbstractSet[str]) -> list[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        return [entry for entry in entries if entry.path not in known and not ignored(entry.name)]


def _examined(entry: os.DirEntry[str]) -> FoundFile | None:
    try:
        status = entry.stat()
    except OSError:  # gone already, or a link to nowhere
        return None
    if not stat.S_ISREG(status.st_mode) or status.st_size == 0:
        return None
    return FoundFile(entry.path, status.st_size, status.st_mtime)


class FsspecListing:
    """A folder or glob on any filesystem of fsspec; every look lists it whole."""

    def __init__(self, fs: Any, path: str, literal: bool, wanted: Matcher, stopwatch: Stopwatch) -> None:
        self.cost_s = 0.0
        self.only_folders = False
        self._fs = fs
        self._wanted_name = wanted
        self._path = path
        self._literal = literal
        self._root = path if literal else _MAGIC.split(path)[0].rpartition("/")[0]
        self._stopwatch = stopwatch

    def new_files(self, known: AbstractSet[str], now_s: float) -> list[FoundFile]:
        began_s = self._stopwatch()
        try:
            infos = list(self._infos())
        except FileNotFoundError:  # object stores have no empty folders
            infos = []
        self.cost_s = self._stopwatch() - began_s
        shown = [info for info in infos if (name := self._parts(info)[-1]) and not ignored(name)]
        self.only_folders = self._literal and bool(shown) and all(info["type"] == "directory" for info in shown)
        return [_found(info, now_s) for info in infos if info["name"] not in known and self._wanted(info)]

    def _infos(self) -> Iterator[Mapping[str, Any]]:
        self._fs.invalidate_cache(self._root)
        if self._literal:
            yield from self._fs.ls(self._path, detail=True)
            return
        for info in self._fs.glob(self._path, detail=True).values():
            yield from self._fs.ls(info["name"], detail=True) if info["type"] == "directory" else (info,)

    def _wanted(self, info: Mapping[str, Any]) -> bool:
        parts = self._parts(info)
        filled = info["type"] == "file" and info.get("size") != 0
        return filled and not any(map(ignored, parts)) and bool(self._wanted_name(parts[-1]))

    def _parts(self, info: Mapping[str, Any]) -> list[str]:
        return str(info["name"])[len(self._root) :].strip("/").split("/")


def _found(info: Mapping[str, Any], now_s: float) -> FoundFile:
    return FoundFile(str(info["name"]), int(info.get("size") or 0), _modified_s(info, now_s))


def _modified_s(info: Mapping[str, Any], now_s: float) -> float:
    value = next((info[key] for key in _MODIFIED_KEYS if info.get(key) is not None), now_s)
    if isinstance(value, str):
        value = datetime.fromisoformat(value)
    if isinstance(value, datetime):
        return (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp()
    return float(value)
