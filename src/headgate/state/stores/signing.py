"""How a node proves to a peer that it has the shared key, without sending it.

Every request bears a time, a number used once and a signature over both, the method and the path. What is uploaded is
followed by a signature of its own, so that a peer stores nothing that was changed or cut off on its way.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading

SCHEME = "Headgate"
SIGNATURE_BYTES = 32

CLOCKS_APART_S = 300.0
"""Requests are taken for so long before and after their time; their numbers are remembered meanwhile."""


def sign(key: bytes, method: str, target: str, now_s: float) -> str:
    """The value of the Authorization header."""
    proof = f"{now_s:.0f}:{secrets.token_hex(16)}"
    return f"{SCHEME} {proof}:{_signature(key, method, target, proof)}"


def body_signer(key: bytes, authorization: str) -> hmac.HMAC:
    """Signs an upload; bound to its request, so that it fits no other."""
    return hmac.new(key, f"body {authorization} ".encode(), hashlib.sha256)


def _signature(key: bytes, method: str, target: str, proof: str) -> str:
    return hmac.new(key, f"{method} {target} {proof}".encode(), hashlib.sha256).hexdigest()


class Doorkeeper:
    """Checks signatures; each is good once."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._seen: dict[str, float] = {}
        self._lock = threading.Lock()

    def refusal(self, method: str, target: str, authorization: str, now_s: float) -> str | None:
        """Why this request is refused, or None."""
        scheme, _, rest = authorization.partition(" ")
        proof, _, signature = rest.rpartition(":")
        at, _, number = proof.partition(":")
        if scheme != SCHEME or not at.isdigit():
            return "not signed; give the key that the peers share"
        if not hmac.compare_digest(signature.encode(), _signature(self._key, method, target, proof).encode()):
            return "signed with another key"
        if abs(now_s - int(at)) > CLOCKS_APART_S:
            return f"signed {now_s - int(at):+.0f} s from now; set the clocks of both machines"
        return None if self._first_time(number, now_s) else "this request was made before"

    def _first_time(self, number: str, now_s: float) -> bool:
        with self._lock:
            if number in self._seen:
                return False
            self._seen[number] = now_s
            if len(self._seen) % 1024 == 0:
                self._seen = {old: at for old, at in self._seen.items() if now_s - at < 2 * CLOCKS_APART_S}
            return True
