"""A consistent picture of a running query's checkpoint, without pausing the query.

Spark writes a batch N in this order: the sources' logs, `offsets/N`, version N + 1 of all states, `commits/N`. So once
`commits/N` is seen, everything that batch N needs is there, and stays there for many batches: files are never changed,
and deleted only after a hundred batches. Should one vanish while it is copied, the picture is taken again.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections import defaultdict
from dataclasses import dataclass

from headgate.errors import StateError
from headgate.state.folder import Folder, Seen, read_all
from headgate.state.versions import Incomplete, Version, needed, operator_batch, parse_version

_TEMPORARY = re.compile(r"\.(tmp|part)$")
_PART_OF_ZIP = re.compile(r".*/(SSTs/[^/]+\.sst|logs/[^/]+\.log)(\.crc)?")

OWN = "headgate/"
"""Headgate's files in a checkpoint. They grow while they are read; what they had when they were opened is a prefix
that its readers understand."""


class Gone(Exception):
    """The checkpoint moved on while it was looked at: look again."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The files that hold the checkpoint as of a batch."""

    batch: int
    files: dict[str, Seen]


def newest_batch(folder: Folder) -> int | None:
    """The newest batch that was committed; None if there is none yet."""
    return max((int(name) for name in folder.names("commits") if name.isdigit()), default=None)


def look(folder: Folder) -> Snapshot | None:
    """The newest snapshot; None before the first commit. Raises Gone if the checkpoint moved on meanwhile."""
    batch = newest_batch(folder)  # before anything else is listed: see above
    if batch is None:
        return None
    begun = f"offsets/{batch + 1}" if str(batch + 1) in folder.names("offsets") else None  # before its sources' logs
    listing = {path: seen for path, seen in folder.walk().items() if not _ignored(path)}
    try:
        chosen = _Selection(folder, listing, batch, begun).paths()
    except FileNotFoundError as error:
        raise Gone(str(error)) from error
    return Snapshot(batch, {path: listing[path] for path in sorted(chosen)})


def _ignored(path: str) -> bool:
    """Hidden files are Hadoop's checksums and what is being written; without its checksum a file is not checked."""
    return any(part.startswith(".") for part in path.split("/")) or _TEMPORARY.search(path) is not None


class _Selection:
    """Takes whatever it does not know; leaves out only what certainly belongs to other batches."""

    def __init__(self, folder: Folder, listing: dict[str, Seen], batch: int, begun: str | None) -> None:
        self._folder = folder
        self._listing = listing
        self._batch = batch
        self._begun = begun
        self._commits: dict[int, str | None] = {}

    def paths(self) -> set[str]:
        chosen, stores = set[str](), defaultdict[str, list[Version]](list)
        for path in self._listing:
            top, _, rest = path.partition("/")
            if top == "state" and (_PART_OF_ZIP.fullmatch(path) or self._of_a_later_batch(path)):
                continue  # a table is named by the whole states that need it
            if top == "state" and (version := parse_version(path.rsplit("/", 1)[-1])) is not None:
                stores[path.rsplit("/", 1)[0]].append(version)
            elif top not in ("commits", "offsets") or self._logged(path, rest):
                chosen.add(path)
        for store, versions in stores.items():
            chosen |= self._store(store, versions)
        if f"offsets/{self._batch}" not in chosen:
            raise Gone(f"offsets/{self._batch} is not there")
        return chosen

    def _of_a_later_batch(self, path: str) -> bool:
        """An operator's metadata names files that need not be there before its batch is committed."""
        batch = operator_batch(path)
        return batch is not None and batch > self._batch

    def _logged(self, path: str, name: str) -> bool:
        """The last two batches, and the offsets of the one that has begun. (Sources number their logs as they like.)"""
        number = name.removesuffix(".crc")
        if not number.isdigit():
            return True
        return self._batch - 1 <= int(number) <= self._batch or path.removesuffix(".crc") == self._begun

    def _store(self, store: str, versions: list[Version]) -> set[str]:
        try:
            files = needed(versions, self._batch + 1, self._committed)
        except Incomplete as error:
            raise Gone(f"{store}: {error}") from error
        chosen = {f"{store}/{file.name}" for file in files}
        for file in files:
            if file.name.endswith(".zip"):
                chosen |= self._parts_of(f"{store}/{file.name}", store)
        return chosen

    def _committed(self, version: int, unique_id: str) -> bool:
        """Commits name the unique ids of the states they made; a commit that is gone cannot say otherwise."""
        batch = version - 1
        if batch not in self._commits:
            path = f"commits/{batch}"
            self._commits[batch] = read_all(self._folder, path).decode() if path in self._listing else None
        text = self._commits[batch]
        return text is None or unique_id in text

    def _parts_of(self, path: str, store: str) -> set[str]:
        """The immutable files that a state of RocksDB consists of."""
        named = set()
        for name, length in rocksdb_parts(read_all(self._folder, path), path):
            part = f"{store}/{name}"
            seen = self._listing.get(part)
            if seen is None or seen.length != length:  # a table appears empty under its final name
                raise Gone(f"{part} is not complete")
            named.add(part)
            if f"{part}.crc" in self._listing:
                named.add(f"{part}.crc")
        return named


def rocksdb_parts(content: bytes, where: str) -> list[tuple[str, int]]:
    """What the `metadata` inside a state's zip names: tables and log files, with their sizes."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            _, _, body = archive.read("metadata").decode().partition("\n")
        metadata = json.loads(body)
    except (zipfile.BadZipFile, KeyError, ValueError) as error:
        raise StateError(f"{where}: cannot be read as a state of RocksDB: {error}") from error
    tables = [(f"SSTs/{each['dfsSstFileName']}", each["sizeBytes"]) for each in metadata.get("sstFiles", [])]
    return tables + [(f"logs/{each['dfsLogFileName']}", each["sizeBytes"]) for each in metadata.get("logFiles", [])]
