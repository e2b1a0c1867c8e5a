"""Where runs record their batches unless told otherwise."""

from __future__ import annotations

import os
import time
import uuid
from pathlib import Path


def runs_folder() -> Path:
    """``$HEADGATE_RUNS``, or a folder among the user's state files."""
    given = os.environ.get("HEADGATE_RUNS")
    if given:
        return Path(given)
    state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return Path(state) / "headgate" / "runs"


def new_run() -> Path:
    """A fresh file name, sorted by time."""
    return runs_folder() / f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}-{uuid.uuid4().hex[:4]}.jsonl"
