"""Where a query began, kept beside its checkpoint.

Spark writes down where a batch ends, but asks the source again where the very first one begins. "Latest" would then be
another answer, and the records between the two would be lost. Once a second batch is in Spark's log nobody asks any
more, and the memory goes: it must not tell another query, started months later, to begin there.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Protocol

from headgate.errors import StateError
from headgate.sources.kafka.positions import Positions, from_offset, to_offset


class BeginningMemory(Protocol):
    """Remembers one set of positions."""

    def recall(self) -> Positions | None: ...

    def keep(self, positions: Positions) -> None: ...

    def forget(self) -> None:
        """Nobody will ask again. Comes after every batch, so it must be cheap but for the first time."""


class ForgetfulMemory:
    """For this process only: enough for a beginning that does not move."""

    def __init__(self) -> None:
        self._positions: Positions | None = None

    def recall(self) -> Positions | None:
        return self._positions

    def keep(self, positions: Positions) -> None:
        self._positions = positions

    def forget(self) -> None:
        self._positions = None


class FileMemory:
    """A small JSON file on any filesystem of fsspec.

    `what` tells apart those that share a folder, as the cluster does: a query may join topics of one name of two.
    :param cluster: asks for the cluster's name, the same whichever of its brokers are named; only called if needed.
    """

    def __init__(self, folder: str, what: str, cluster: Callable[[], str]) -> None:
        from fsspec.core import url_to_fs

        self._fs, self._folder = url_to_fs(folder)
        self._what = what
        self._cluster = cluster
        self._name: str | None = None
        self._forgotten = False

    def recall(self) -> Positions | None:
        path = self._path()
        try:
            return from_offset(json.loads(self._fs.cat_file(path)))
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise StateError(f"{path}: not a Kafka position ({error}); delete it to begin anew") from error

    def keep(self, positions: Positions) -> None:
        """Under a temporary name first: half a file is worse than none."""
        from fsspec.implementations.local import LocalFileSystem

        path, data = self._path(), json.dumps(to_offset(positions)).encode()
        if isinstance(self._fs, LocalFileSystem):
            from headgate.state.stores.folder import FolderStore

            FolderStore(self._folder).put(path.rsplit("/", 1)[1], [data])  # there after a power cut, too
            return
        self._fs.makedirs(self._folder, exist_ok=True)
        self._fs.pipe_file(path + ".tmp", data)
        self._fs.mv(path + ".tmp", path)

    def forget(self) -> None:
        """What cannot be removed now is tried again after the next batch: a query does not end for that."""
        if self._forgotten:
            return
        try:
            self._fs.rm_file(self._path())
        except FileNotFoundError:
            pass
        except OSError:
            return
        self._forgotten = True

    def _path(self) -> str:
        if self._name is None:
            title = json.dumps([self._what, self._cluster()])
            self._name = f"kafka-{hashlib.sha256(title.encode()).hexdigest()[:12]}.json"
        return f"{self._folder}/{self._name}"
