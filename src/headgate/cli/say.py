"""How a command tells what it is doing: beside its results, which may be piped elsewhere."""

from __future__ import annotations

import sys


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
