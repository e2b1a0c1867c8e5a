"""A place behind fsspec: an object store, a remote file system, or anything else that has a driver."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from headgate.state.stores.folder import PART
from headgate.state.stores.port import Chunk

OBJECT_STORES = {"s3", "s3a", "gs", "gcs", "abfs", "abfss", "adl", "az", "oci", "oss", "r2"}
"""They show an object when its upload is complete; there a rename would be a copy."""


class RemoteStore:
    """Keys are paths below a root of the driver's."""

    def __init__(self, filesystem: Any, root: str, name: str, host: str) -> None:
        self._fs = filesystem
        self._root = root.rstrip("/")
        self.name = name
        self.host = host
        protocol = filesystem.protocol
        self._whole = bool(OBJECT_STORES.intersection([protocol] if isinstance(protocol, str) else protocol))

    def put(self, key: str, chunks: Iterable[Chunk]) -> None:
        path = self._path(key)
        written = path if self._whole else f"{path}.{uuid.uuid4().hex[:8]}{PART}"
        with _as_os_error():
            self._fs.makedirs(path.rsplit("/", 1)[0], exist_ok=True)
            file = self._fs.open(written, "wb")
        try:
            for chunk in chunks:
                with _as_os_error():
                    file.write(chunk)
        except BaseException:
            self._discard(file, written)
            raise
        with _as_os_error():
            file.close()
            if written != path:
                self._fs.mv(written, path)

    def get(self, key: str, start: int = 0, end: int | None = None) -> bytes:
        with _as_os_error():
            return bytes(self._fs.cat_file(self._path(key), start=start or None, end=end))

    def find(self, prefix: str = "") -> dict[str, int]:
        folder = self._path(prefix) if prefix else self._root
        with _as_os_error():
            self._fs.invalidate_cache()
            try:
                found = self._fs.find(folder, detail=True)
            except FileNotFoundError:
                return {}
            skip = len(str(self._fs._strip_protocol(self._root)).rstrip("/")) + 1
        return {path[skip:]: int(info["size"]) for path, info in found.items() if not path.endswith(PART)}

    def delete(self, key: str) -> None:
        with _as_os_error(), suppress(FileNotFoundError):
            self._fs.rm_file(self._path(key))

    def _path(self, key: str) -> str:
        return f"{self._root}/{key}"

    def _discard(self, file: Any, written: str) -> None:
        """Leave nothing of it. A file of an object store must not be closed, which would complete it."""
        with suppress(Exception):
            if self._whole:
                file.discard()
                file.closed = True
            else:
                file.close()
                self._fs.rm_file(written)


@contextmanager
def _as_os_error() -> Iterator[None]:
    """Drivers raise errors of their own libraries; who uses a place knows only OSError."""
    try:
        yield
    except OSError:
        raise
    except Exception as error:
        raise OSError(f"{type(error).__name__}: {error}") from error
