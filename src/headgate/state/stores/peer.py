"""A place at another node: the client of its fragment server."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from urllib.parse import quote, urlsplit

from headgate.state.stores.port import Chunk
from headgate.state.stores.signing import body_signer, sign

TIMEOUT_S = 20.0
"""A peer that is silent for so long counts as lost."""


class PeerStore:
    """``http://host:port``; every thread keeps a connection of its own."""

    def __init__(self, url: str, key: bytes, name: str | None = None, host: str | None = None) -> None:
        parts = urlsplit(url)
        self._address = parts.hostname or "localhost", parts.port or 80
        self._key = key
        self.name = name or f"http://{self._address[0]}:{self._address[1]}"
        self.host = host or self._address[0]
        self._connections = threading.local()

    def put(self, key: str, chunks: Iterable[Chunk]) -> None:
        target = self._target("fragment", key)
        authorization = sign(self._key, "PUT", target, time.time())

        def signed() -> Iterator[Chunk]:
            signer = body_signer(self._key, authorization)
            for chunk in chunks:
                signer.update(chunk)
                yield chunk
            yield signer.digest()

        self._ask("PUT", target, authorization, signed())

    def get(self, key: str, start: int = 0, end: int | None = None) -> bytes:
        span = f"?start={start}" + ("" if end is None else f"&end={end}")
        return self._ask("GET", self._target("fragment", key) + span)

    def find(self, prefix: str = "") -> dict[str, int]:
        found: dict[str, int] = json.loads(self._ask("GET", self._target("tree", prefix)))
        return found

    def delete(self, key: str) -> None:
        self._ask("DELETE", self._target("fragment", key))

    def _target(self, kind: str, key: str) -> str:
        return f"/{kind}/{quote(key)}"

    def _ask(
        self, method: str, target: str, authorization: str | None = None, body: Iterator[Chunk] | None = None
    ) -> bytes:
        """A connection that the peer closed while it was idle is opened anew, once; an upload cannot be repeated."""
        fresh = self._drop_idle() if body is not None else False
        while True:
            try:
                return self._answer(method, target, authorization, body)
            except (http.client.HTTPException, ConnectionError) as error:
                self._drop_idle()
                if fresh or body is not None:
                    raise OSError(f"{self.name}: {type(error).__name__}: {error}") from error
                fresh, authorization = True, None
            except BaseException:
                self._drop_idle()
                raise

    def _answer(self, method: str, target: str, authorization: str | None, body: Iterator[Chunk] | None) -> bytes:
        connection = self._connection()
        headers = {"Authorization": authorization or sign(self._key, method, target, time.time())}
        with suppress(BrokenPipeError):  # a peer that refuses does not wait for the end: its answer says why
            connection.request(method, target, body, headers, encode_chunked=body is not None)
        response = connection.getresponse()
        content = response.read()
        if response.status >= 300:
            raise _error(response.status, f"{self.name}: {content.decode(errors='replace').strip()}")
        return content

    def _connection(self) -> http.client.HTTPConnection:
        found: http.client.HTTPConnection | None = getattr(self._connections, "open", None)
        if found is None:
            found = self._connections.open = http.client.HTTPConnection(*self._address, timeout=TIMEOUT_S)
        return found

    def _drop_idle(self) -> bool:
        found = getattr(self._connections, "open", None)
        if found is not None:
            found.close()
            self._connections.open = None
        return True


def _error(status: int, text: str) -> OSError:
    if status == 404:
        return FileNotFoundError(text)
    return PermissionError(text) if status in (401, 403) else OSError(text)
