"""A durable, append-only list of the files a query has seen, numbered in the order of discovery.

An offset ``{"files": n}`` means "the first n entries", before and after any restart. A high-water mark of modification
times could not promise that: a file that is renamed into the folder brings an old time with it.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence

from headgate.errors import StateError
from headgate.sources.files.segments import REMEDY, TORN_SUFFIX, FileEntry, Segment, SegmentStore, encode

MAX_SEGMENTS = 32
"""Above this some are merged: a start reads them all, and every write lists them."""

MERGE_AT_LEAST = 16
"""Merging fewer at a time would write every entry more often."""

LOAD_ATTEMPTS = 3
"""A segment may vanish between listing and reading, when the process before us is just merging."""


class FileLog:
    """The files seen so far; `add` numbers new ones, `flush` makes them durable.

    Only a number up to `durable` may be handed out in an offset. One process may write at a time: another one's
    segment is found before and after each write, and whoever finds one stops with a StateError.
    """

    def __init__(self, directory: str) -> None:
        self._store = SegmentStore(directory)
        self._writer = secrets.token_hex(4)
        self._segments, self._leftovers, self._entries = _load(self._store)
        self._paths = {entry.path for entry in self._entries}
        self._durable = len(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def directory(self) -> str:
        return self._store.directory

    @property
    def durable(self) -> int:
        """So many entries survive a crash."""
        return self._durable

    @property
    def paths(self) -> set[str]:
        """Every path in the log, for the listing to ask; not to be changed by the caller."""
        return self._paths

    @property
    def last_seen_s(self) -> float | None:
        """When the newest entry was seen: after this nobody is known to have looked."""
        return self._entries[-1].seen_s if self._entries else None

    def entries(self, start: int, end: int) -> list[FileEntry]:
        """The entries numbered from `start` up to, but not including, `end`."""
        if not 0 <= start <= end <= len(self._entries):
            raise StateError(f"{self.directory}: files {start} to {end} are not in the log of {len(self)}; {REMEDY}")
        return self._entries[start:end]

    def add(self, files: Iterable[tuple[str, int, float]], seen_s: float) -> None:
        """Number files (path, size in bytes, modification time) that are not in the log yet; others are skipped."""
        for path, size_bytes, modified_s in files:
            if path not in self._paths:
                self._paths.add(path)
                self._entries.append(FileEntry(len(self._entries), path, size_bytes, modified_s, seen_s))

    def flush(self) -> None:
        """Make every entry durable. Until this returns, no offset may cover the new ones."""
        if self._durable == len(self._entries):
            return
        segment = Segment(self._durable, len(self._entries), self._writer)
        self._check_alone()
        self._publish(segment, encode(self._entries[self._durable :]))
        self._durable = segment.end

    def compact(self) -> None:
        """Merge the youngest segments if there are many; a crash at any moment leaves the log whole."""
        at = merge_point([segment.end - segment.first for segment in self._segments])
        if at is None:
            return
        self._check_alone()
        old = self._segments[at:]
        obsolete = [segment.name for segment in old] + self._leftovers
        merged = Segment(old[0].first, old[-1].end, self._writer)
        # The old ones stay listed until the merged one is there, so that they are not taken for another writer's.
        self._publish(merged, encode(self._entries[merged.first : merged.end], obsolete))
        self._segments[at:] = [merged]
        self._leftovers = self._store.remove(obsolete + self._torn())

    def _publish(self, segment: Segment, data: bytes) -> None:
        """Write, and look again: of two that write at once at least one sees the other, and takes its own back."""
        self._segments.append(segment)
        try:
            self._store.write(segment, data)
            self._check_alone()
        except BaseException as error:
            self._segments.remove(segment)
            self._store.remove([segment.name])
            if isinstance(error, OSError):
                raise StateError(
                    f"{self.directory}: the file log cannot be written ({error}); make room or mend the permissions"
                ) from error
            raise

    def _check_alone(self) -> None:
        """Raise StateError unless the folder holds exactly this writer's view of the log."""
        present = {name for name in self._store.names() if Segment.parse(name)}
        mine = {segment.name for segment in self._segments}
        if foreign := present - mine - set(self._leftovers):
            raise StateError(
                f"{self.directory}: another process writes this file log ({min(foreign)}); stop one of the two, and"
                " give every query its own checkpoint"
            )
        if gone := mine - present:
            raise StateError(f"{self.directory}: {min(gone)} was deleted while the query ran; {REMEDY}")

    def _torn(self) -> list[str]:
        return [name for name in self._store.names() if name.endswith(TORN_SUFFIX)]


def merge_point(counts: Sequence[int]) -> int | None:
    """From which segment on to merge, given their sizes, or None.

    What stays is at least twice as large as what follows it, so there are few segments (logarithmically many), and
    each entry is rewritten as few times.
    """
    if len(counts) <= MAX_SEGMENTS:
        return None
    at = len(counts) - MERGE_AT_LEAST
    total = sum(counts[at:])
    while at > 0 and counts[at - 1] <= 2 * total:
        at -= 1
        total += counts[at]
    return at


def chain(segments: Iterable[Segment]) -> tuple[list[Segment], list[Segment]]:
    """Split into those that together make the log, and those that a longer one covers; a ValueError if they do not."""
    chosen: list[Segment] = []
    covered: list[Segment] = []
    reached = 0
    for segment in sorted(segments, key=lambda each: (each.first, -each.end, each.writer)):
        if segment.first == reached and segment.end > reached:
            chosen.append(segment)
            reached = segment.end
        elif segment.end <= reached:
            covered.append(segment)
        else:
            what = "are missing" if segment.first > reached else "are there twice"
            low, high = sorted((reached, segment.first))
            raise ValueError(f"files {low} to {high} {what}")
    return chosen, covered


def _load(store: SegmentStore) -> tuple[list[Segment], list[str], list[FileEntry]]:
    problem: OSError | None = None
    for _ in range(LOAD_ATTEMPTS):
        try:
            return _load_once(store)
        except OSError as error:
            problem = error
    raise StateError(
        f"{store.directory}: the file log cannot be read ({problem}); check that the folder is reachable and readable"
    ) from problem


def _load_once(store: SegmentStore) -> tuple[list[Segment], list[str], list[FileEntry]]:
    segments = [segment for segment in map(Segment.parse, store.names()) if segment]
    try:
        chosen, covered = chain(segments)
    except ValueError as error:
        raise StateError(f"{store.directory}: the file log is damaged: {error}; {REMEDY}") from error
    entries: list[FileEntry] = []
    replaced: set[str] = set()
    for segment in chosen:
        more, names = store.read(segment)
        entries += more
        replaced.update(names)
    leftovers = [segment.name for segment in covered]
    _check_replaced(store, set(leftovers) - replaced)
    return chosen, leftovers, entries


def _check_replaced(store: SegmentStore, unexplained: set[str]) -> None:
    """A covered segment that no merge has replaced is another writer's: which of the two counted is not known."""
    if unexplained:
        raise StateError(
            f"{store.directory}: two processes have written the same part of the file log ({min(unexplained)});"
            f" delete the segment of the one that failed, or: {REMEDY}"
        )
