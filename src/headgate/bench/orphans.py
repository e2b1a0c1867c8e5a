"""Processes of a benchmark end with the one that asked for them, however that one ended."""

from __future__ import annotations

import os
import signal
import threading
import time

_LOOK_S = 1.0


def end_with_parent() -> None:
    """Interrupt this process, as Ctrl-C would, once its parent is gone; what it has open is closed as usual."""
    threading.Thread(target=_watch, args=(os.getppid(),), daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_LOOK_S)
    os.kill(os.getpid(), signal.SIGINT)
