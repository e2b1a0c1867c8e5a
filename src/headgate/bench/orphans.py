"""Processes of a benchmark end with the one that asked for them, however that one ended."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time

_LOOK_S = 1.0


def end_with_parent() -> None:
    """End this process, as a plain `kill` then does, once its parent is gone; what it has open is closed as usual.

    Not by the signal of Ctrl-C: a shell's background jobs are born deaf to it.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    threading.Thread(target=_watch, args=(os.getppid(),), daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_LOOK_S)
    os.kill(os.getpid(), signal.SIGTERM)
