"""A place at another node: the client of its fragment server."""

from __future__ import annotations

import http.client
import json
import time
import weakref
from collections.abc import Iterable, Iterator
from contextlib import suppress
from urllib.parse import quote, urlsplit

from headgate.state.stores.port import Chunk
from headgate.state.stores.signing import body_signer, sign

TIMEOUT_S = 20.0
"""A peer that is silent for so long counts as lost."""


MOST_IDLE = 4
"""Connections that are kept: a restore has one or two requests on their way to a place at any time."""


class PeerStore:
    """``http://host:port``; connections are kept open and used again, whichever thread asks."""

    def __init__(self, url: str, key: bytes, name: str | None = None, host: str | None = None) -> None:
        parts = urlsplit(url)
        self._address = parts.hostname or "localhost", parts.port or 80
        self._key = key
        self.name = name or f"http://{self._address[0]}:{self._address[1]}"
        self.host = host or self._address[0]
        self._idle: list[http.client.HTTPConnection] = []
        weakref.finalize(self, _close_all, self._idle)

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
        if body is None:
            with suppress(IndexError, http.client.HTTPException, ConnectionError):
                return self._answer(self._idle.pop(), method, target, None, None)
        fresh = http.client.HTTPConnection(*self._address, timeout=TIMEOUT_S)
        try:
            return self._answer(fresh, method, target, authorization, body)
        except http.client.HTTPException as error:
            raise OSError(f"{self.name}: {type(error).__name__}: {error}") from error

    def _answer(
        self, connection: http.client.HTTPConnection, method: str, target: str, authorization: str | None,
        body: Iterator[Chunk] | None,
    ) -> bytes:  # fmt: skip
        headers = {"Authorization": authorization or sign(self._key, method, target, time.time())}
        try:
            with suppress(BrokenPipeError):  # a peer that refuses does not wait for the end: its answer says why
                connection.request(method, target, body, headers, encode_chunked=body is not None)
            response = connection.getresponse()
            content = response.read()
        except BaseException:
            connection.close()
            raise
        if response.will_close or len(self._idle) >= MOST_IDLE:
            connection.close()
        else:
            self._idle.append(connection)
        if response.status >= 300:
            raise _error(response.status, f"{self.name}: {content.decode(errors='replace').strip()}")
        return content


def _close_all(connections: list[http.client.HTTPConnection]) -> None:
    for connection in connections:
        connection.close()


def _error(status: int, text: str) -> OSError:
    if status == 404:
        return FileNotFoundError(text)
    return PermissionError(text) if status in (401, 403) else OSError(text)
