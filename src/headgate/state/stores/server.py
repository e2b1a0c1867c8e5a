"""The fragment server of a node: keeps other nodes' fragments in a folder, for those who have the shared key."""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

from headgate.state.stores.port import Chunk, FragmentStore
from headgate.state.stores.signing import SIGNATURE_BYTES, Doorkeeper, body_signer
from headgate.state.tags import same

log = logging.getLogger("headgate")

MOST_CHUNK_BYTES = 1 << 23
"""A chunk of an upload that claims to be larger is no chunk of ours."""

DRAINED_BYTES = 1 << 22

IDLE_S = 60.0


class FragmentServer(ThreadingHTTPServer):
    """Serves one store; `with` it or call `shutdown`."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, store: FragmentStore, key: bytes, host: str = "127.0.0.1", port: int = 0) -> None:
        self.store = store
        self.key = key
        self.doorkeeper = Doorkeeper(key)
        super().__init__((host, port), _Handler)

    @property
    def url(self) -> str:
        host, port = self.server_address[:2]
        return f"http://{host if isinstance(host, str) else host.decode()}:{port}"


class _Refused(Exception):
    """The request is answered with this status and text."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(status, text)
        self.status, self.text = status, text


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = IDLE_S
    server: FragmentServer
    _more_to_come = True
    """Whether a part of an upload has not been read yet."""

    def do_GET(self) -> None:
        self._serve()

    do_PUT = do_DELETE = do_GET  # noqa: N815

    def _serve(self) -> None:
        self._more_to_come = True
        try:
            self._check()
            status, content = 200, self._do()
        except _Refused as refused:
            status, content = refused.status, refused.text.encode()
        except FileNotFoundError as error:
            status, content = 404, f"not here: {error}".encode()
        except PermissionError as error:
            status, content = 403, str(error).encode()
        except OSError as error:
            status, content = 500, f"{type(error).__name__}: {error}".encode()
        if status >= 300:
            self.close_connection = True  # an upload may be half read
            self._drain()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(content)

    def _check(self) -> None:
        given = self.headers.get("Authorization", "")
        refusal = self.server.doorkeeper.refusal(self.command, self.path, given, time.time())
        if refusal is not None:
            raise _Refused(401, refusal)

    def _do(self) -> bytes:
        target = urlsplit(self.path)
        kind, _, key = unquote_path(target.path)
        store = self.server.store
        if kind == "tree" and self.command == "GET":
            return json.dumps(store.find(key)).encode()
        if kind != "fragment" or not key:
            raise _Refused(404, f"{target.path}: there are /tree/ and /fragment/")
        if self.command == "PUT":
            store.put(key, self._upload())
        elif self.command == "DELETE":
            store.delete(key)
        else:
            span = {name: int(values[0]) for name, values in parse_qs(target.query).items() if values[0].isdigit()}
            return store.get(key, span.get("start", 0), span.get("end"))
        return b""

    def _drain(self) -> None:
        """Take a little more of what is being sent: a connection that is cut at once swallows the answer."""
        if self.command == "PUT" and self._more_to_come:
            with suppress(OSError, ValueError, _Refused):
                taken = 0
                for chunk in self._chunks():
                    taken += len(chunk)
                    if taken >= DRAINED_BYTES:
                        return

    def _upload(self) -> Iterator[Chunk]:
        """All but the signature that comes last; the store drops everything if it does not fit."""
        signer = body_signer(self.server.key, self.headers.get("Authorization", ""))
        kept = b""
        for chunk in self._chunks():
            kept += chunk
            ready, kept = kept[:-SIGNATURE_BYTES], kept[-SIGNATURE_BYTES:]
            signer.update(ready)
            yield ready
        if not same(signer.digest(), kept):
            raise _Refused(400, "the upload was cut off or changed on its way")

    def _chunks(self) -> Iterator[bytes]:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            raise _Refused(411, "uploads are chunked")
        while True:
            size = self._chunk_bytes()
            content = self.rfile.read(size) if size else b""
            self.rfile.readline(64)
            if not size:
                self._more_to_come = False
                return
            if len(content) < size:
                self._more_to_come = False
                raise _Refused(400, "the upload was cut off")
            yield content

    def _chunk_bytes(self) -> int:
        line = self.rfile.readline(64).split(b";")[0].strip()
        if re.fullmatch(rb"[0-9a-fA-F]{1,8}", line) is None or int(line, 16) > MOST_CHUNK_BYTES:
            self._more_to_come = False
            raise _Refused(400, "the upload was cut off")
        return int(line, 16)

    def log_message(self, format: str, *values: object) -> None:
        log.debug("%s %s", self.address_string(), format % values)


def unquote_path(path: str) -> tuple[str, str, str]:
    """``/kind/key``: the key comes as it was quoted once, by the client."""
    kind, slash, key = path.lstrip("/").partition("/")
    return kind, slash, unquote(key)
