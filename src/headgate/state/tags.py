"""Checksums that cannot be forged: every cell and every manifest bears a tag made with the backup's key.

Without a key of the user's the tags still find every accidental change; with one they also find a deliberate one. The
tag of a cell covers where it belongs, so that a block of another backup, or of another place in it, is refused too.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable

from headgate.errors import BadParameter
from headgate.state.keys import Line, PackId
from headgate.state.layout import TAG_BYTES

NO_KEY = "headgate"
LEAST_KEY_CHARACTERS = 8


class Keys:
    """What is made of the one secret that a user gives: a key for blocks, and one for talking to peers."""

    def __init__(self, secret: str | None = None) -> None:
        if secret is not None and len(secret) < LEAST_KEY_CHARACTERS:
            problem = f"is too short: {len(secret)} characters"  # the value stays secret
            remedy = f"use at least {LEAST_KEY_CHARACTERS}, for example the output of: openssl rand -hex 32"
            raise BadParameter("key", "...", problem, remedy)
        given = (secret or NO_KEY).encode()
        self.secret = secret is not None
        self._blocks = hmac.digest(given, b"blocks", "sha256")
        self.peers = hmac.digest(given, b"peers", "sha256")

    def __repr__(self) -> str:
        return "Keys(secret)" if self.secret else "Keys()"

    def tagger(self, line: Line, pack: PackId, index: int) -> Callable[[int, memoryview], bytes]:
        """A function that makes the tags of one fragment's cells, from the stripe and the content."""

        def tag(stripe: int, cell: memoryview) -> bytes:
            made = hmac.new(self._blocks, f"cell {line.prefix} {pack} {index} {stripe} ".encode(), hashlib.sha256)
            made.update(cell)
            return made.digest()[:TAG_BYTES]

        return tag

    def text(self, kind: str, content: bytes) -> str:
        return hmac.new(self._blocks, kind.encode() + b" " + content, hashlib.sha256).hexdigest()


def same(left: bytes | str, right: bytes | str) -> bool:
    """Comparison in constant time."""
    if isinstance(left, str):
        left = left.encode()
    if isinstance(right, str):
        right = right.encode()
    return hmac.compare_digest(left, right)
