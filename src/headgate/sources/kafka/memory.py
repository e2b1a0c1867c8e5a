"""Where a query began, kept beside its checkpoint.

Spark writes down where a batch ends, but asks the source again where the very first one begins. "Latest" would then be
another answer, and the records between the two would be lost.
"""

from __future__ import annotations

import json
from typing import Protocol

from headgate.errors import StateError
from headgate.sources.kafka.positions import Positions, from_offset, to_offset


class BeginningMemory(Protocol):
    """Remembers one set of positions."""

    def recall(self) -> Positions | None: ...

    def keep(self, positions: Positions) -> None: ...


class ForgetfulMemory:
    """For this process only: enough for a beginning that does not move."""

    def __init__(self) -> None:
        self._positions: Positions | None = None

    def recall(self) -> Positions | None:
        return self._positions

    def keep(self, positions: Positions) -> None:
        self._positions = positions


class FileMemory:
    """A small JSON file on any filesystem of fsspec."""

    def __init__(self, path: str) -> None:
        from fsspec.core import url_to_fs

        self._fs, self._path = url_to_fs(path)

    def recall(self) -> Positions | None:
        try:
            return from_offset(json.loads(self._fs.cat_file(self._path)))
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise StateError(f"{self._path}: not a Kafka position ({error}); delete it to begin anew") from error

    def keep(self, positions: Positions) -> None:
        """Under a temporary name first: half a file is worse than none."""
        parent = self._path.rsplit("/", 1)[0]
        self._fs.makedirs(parent, exist_ok=True)
        self._fs.pipe_file(self._path + ".tmp", json.dumps(to_offset(positions)).encode())
        self._fs.mv(self._path + ".tmp", self._path)
