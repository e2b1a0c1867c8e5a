"""How gates and the coordinator talk: JSON messages over a local socket that nobody else can use.

The socket and its key lie in a folder that only this user can enter (mode 0700); a gate proves with its first message
that it has read the key. Messages are JSON, never pickles.

    coordinator -> gate   {"challenge": NONCE}                                            on connecting
    gate -> coordinator   {"op": "hello", "gate": ID, "pid": N, "proof": HMAC}
                          {"op": "ask", "rows": N | null, "age_s": S | null, "whole": true}
                          {"op": "took", "rows": N, "left": N, "arrivals": [[first_s, step_s, count], …], "skipped": N}
                          {"op": "planned", "shares": [TEXT, …]}                          what each task will read
                          {"op": "bye"}
    coordinator -> gate   {"query": NAME, "state_dir": PATH, "started_at_s": S,           to hello
                           "deadline_s": S | null} | {"unknown": true}
                          {"open": true, "max_rows": N | null, "row_work_s": S | null}    to ask
                          | {"hold_s": S, "rate_rows_s": R} | {"idle_s": S} | {"pass": true}
                          {"again": true}                                                 unasked: ask again now
"""

from __future__ import annotations

import hmac
import json
import os
import secrets
import shutil
import socket
import struct
import tempfile
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from headgate.errors import BadParameter

Message = dict[str, Any]

_STUCK_READ = struct.pack("ll", 0, 200_000)  # a timeval of 0.2 s
_MAX_PATH = 100  # a Unix socket's path has room for about 107 bytes
_MAX_MESSAGE_BYTES = 8 << 20
_KEY_FILE = "key"
_SOCKET_FILE = "gate.sock"


@dataclass(frozen=True, slots=True)
class Address:
    """A private folder with the socket and its key."""

    folder: str

    @property
    def socket(self) -> str:
        return str(Path(self.folder) / _SOCKET_FILE)

    def key(self) -> bytes:
        return (Path(self.folder) / _KEY_FILE).read_bytes()


def create_address(parent: str | None) -> Address:
    """Make the private folder and a fresh key in `parent` (default: the system's temporary folder)."""
    try:
        folder = tempfile.mkdtemp(prefix="headgate-", dir=parent)  # mkdtemp makes it 0700
    except OSError as error:
        raise BadParameter(
            "socket_dir", parent or tempfile.gettempdir(), f"cannot create a folder there ({error.strerror})",
            "name an existing folder that you may write to",
        ) from error  # fmt: skip
    address = Address(folder)
    if len(address.socket) > _MAX_PATH:
        shutil.rmtree(folder, ignore_errors=True)
        raise BadParameter("socket_dir", parent, "the path is too long for a Unix socket", "name a shorter folder")
    _write_private(Path(folder) / _KEY_FILE, secrets.token_bytes(32))
    return address


def _write_private(path: Path, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)


def listen(address: Address) -> socket.socket:
    """Open the socket; only this user may connect (mode 0600 inside a 0700 folder)."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address.socket)
    os.chmod(address.socket, 0o600)
    listener.listen(128)
    return listener


def accept(listener: socket.socket) -> tuple[Connection, str]:
    """Take the next connection and challenge it; returns it with the nonce that its proof must be about."""
    accepted, _ = listener.accept()
    # Half a message must not stop the coordinator: a read that gets stuck fails instead.
    accepted.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, _STUCK_READ)
    connection, nonce = Connection(accepted.detach()), secrets.token_hex(16)
    send(connection, {"challenge": nonce})
    return connection, nonce


def connect(address: Address, timeout_s: float) -> tuple[Connection, str]:
    """Connect as a gate; returns the connection and the proof that belongs into its hello.

    Raises OSError, EOFError or ValueError when that does not work within `timeout_s`.
    """
    plain = socket.socket(socket.AF_UNIX)
    plain.settimeout(timeout_s)
    plain.connect(address.socket)
    plain.setblocking(True)
    connection = Connection(plain.detach())
    if not connection.poll(timeout_s):
        raise TimeoutError(f"no challenge within {timeout_s:g} s")
    return connection, proof(address.key(), str(receive(connection)["challenge"]))


def proof(key: bytes, nonce: str) -> str:
    return hmac.new(key, nonce.encode(), "sha256").hexdigest()


def proves(key: bytes, nonce: str, claim: object) -> bool:
    return isinstance(claim, str) and hmac.compare_digest(proof(key, nonce), claim)


def send(connection: Connection, message: Message) -> None:
    connection.send_bytes(json.dumps(message, allow_nan=False, separators=(",", ":")).encode())


def receive(connection: Connection) -> Message:
    """Read one message; EOFError at the end, ValueError for anything that is not one."""
    message = json.loads(connection.recv_bytes(_MAX_MESSAGE_BYTES))
    if not isinstance(message, dict):
        raise ValueError(f"not a message: {message!r:.80}")
    return message


def remove(address: Address) -> None:
    shutil.rmtree(address.folder, ignore_errors=True)
