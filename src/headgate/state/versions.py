"""Which files of a state store a given version needs. Pure: names in, names out.

A store's folder holds whole states (`.snapshot` of the HDFS-backed store, `.zip` of RocksDB) and changes (`.delta`,
`.changelog`), each named for its version; with checkpoint format 2 also for the run that wrote it (`7_<uuid>.zip`).
A version is rebuilt from the newest whole state before it and all changes since.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

_NAME = re.compile(r"(\d+)(?:_([0-9a-fA-F-]+))?\.(snapshot|zip|delta|changelog)(\.crc)?")
_WHOLE = ("snapshot", "zip")

_OPERATOR = re.compile(r"state/\d+/_metadata/v2/(\d+)")


def operator_batch(path: str) -> int | None:
    """The batch that wrote this metadata of an operator; None for any other file."""
    found = _OPERATOR.fullmatch(path)
    return None if found is None else int(found[1])


@dataclass(frozen=True, slots=True)
class Version:
    """A versioned file, understood."""

    name: str
    number: int
    unique_id: str | None
    whole: bool
    checksum: bool
    """A side file with the checksum of the file itself."""


def parse_version(name: str) -> Version | None:
    """None for files that are not versioned, which every version needs."""
    found = _NAME.fullmatch(name)
    if found is None:
        return None
    return Version(name, int(found[1]), found[2], found[3] in _WHOLE, found[4] is not None)


class Incomplete(Exception):
    """A folder does not hold (any more, or yet) what the version needs."""


def needed(files: Iterable[Version], wanted: int, committed: Callable[[int, str], bool]) -> list[Version]:
    """The files from which version `wanted` can be rebuilt.

    :param committed: whether a unique id is that of the run which committed a version: a task that was tried twice
        leaves files that nobody will read, and no state may be built upon them.
    """
    files = [file for file in files if file.number <= wanted]
    content = [file for file in files if not file.checksum]
    usable = [
        file for file in files if file.unique_id is None or not file.whole or committed(file.number, file.unique_id)
    ]
    base = max((file.number for file in usable if file.whole and not file.checksum), default=0)
    changes = {file.number for file in content if not file.whole}
    if gaps := [number for number in range(base + 1, wanted + 1) if number not in changes]:
        raise Incomplete(f"version {gaps[0]} is missing between {base} and {wanted}")
    return [file for file in usable if (file.number == base if file.whole else file.number > base)]
