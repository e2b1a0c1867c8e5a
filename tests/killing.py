"""Die in the middle of a write to the file log, as by kill -9: nothing is cleaned up afterwards."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from unittest import mock

from headgate.sources.files import segments as file_segments
from headgate.sources.files.segments import SegmentStore

STEPS = ("torn", "not renamed", "not synced", "nothing removed", "one removed")
"""How far the write gets; the last two matter to a compaction only."""


class Killed(BaseException):
    """No handler for errors may catch this."""


@contextmanager
def killed_at(step: str) -> Iterator[None]:
    """Run the block in a process that dies at `step` of its next write; the death itself is swallowed."""
    with ExitStack() as patches, suppress(Killed):
        for target, name, fatal in _fatal(step):
            patches.enter_context(mock.patch.object(target, name, fatal))
        yield


def _fatal(step: str):
    """What to replace so that the process dies at `step`, and does not clean up after it."""
    yield SegmentStore, "remove", _remove_first if step == "one removed" else _die
    if step == "torn":
        yield os, "fsync", _tear
    elif step == "not renamed":
        yield os, "replace", _die
    elif step == "not synced":
        yield file_segments, "_sync_folder", _die


def _die(*args):
    raise Killed


def _tear(handle):
    os.ftruncate(handle, os.fstat(handle).st_size // 2)
    raise Killed


def _remove_first(store, names):
    store._removed(names[0])
    raise Killed


def log_files(directory: str) -> list[str]:
    return sorted(os.listdir(directory))
