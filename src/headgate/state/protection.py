"""Backups of a running query, in the background: they may fail, the query goes on."""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, replace

from headgate.errors import HeadgateError
from headgate.state.backup import Backup
from headgate.state.fence import FencedOff
from headgate.state.folder import open_folder
from headgate.state.saving import Saved, Saver

log = logging.getLogger("headgate")

NICENESS = 10
"""Coding and sending yield to the query's own work; on an idle machine they take what they need."""

LAST_SAVE_S = 20.0
"""How long a query's end waits for its last backup."""


@dataclass(frozen=True, slots=True)
class BackupStatus:
    """How the backups of a query are going."""

    batch: int | None = None
    """The batch that the newest backup holds."""
    saved_at_s: float | None = None
    took_s: float = 0.0
    state_bytes: int = 0
    """Size of the whole state."""
    coded_bytes: int = 0
    """What had changed and was coded, in all backups."""
    backups: int = 0
    bears: int = 0
    """How many places may be lost now, whichever they are."""
    failures: int = 0
    problem: str | None = None
    """Why the last try failed, or which places failed in it; None once all is well."""


class Protection:
    """Saves a query's checkpoint again and again, until it is stopped."""

    def __init__(self, backup: Backup, query: str) -> None:
        self._backup, self._query = backup, query
        backup.open()  # what is wrong with the places' names or the key is said before the query starts
        self._saver: Saver | None = None
        self._status = BackupStatus()
        self._ending = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self, checkpoint: str) -> None:
        name = f"headgate backup of {self._query}"
        self._thread = threading.Thread(target=self._run, args=(checkpoint,), name=name, daemon=True)
        self._thread.start()

    @property
    def status(self) -> BackupStatus:
        return self._status

    def stop(self) -> None:
        """One last backup if something was committed since, for as long as that is reasonable."""
        self._ending.set()
        if self._thread is None:
            return
        self._thread.join(LAST_SAVE_S)
        if self._thread.is_alive():
            log.warning("%s: the last backup was not done after %g s; going on without it", self._query, LAST_SAVE_S)

    def _run(self, checkpoint: str) -> None:
        lower_priority()
        while not self._ending.wait(self._backup.every_s):
            if not self._try(checkpoint):
                return
        self._try(checkpoint)

    def _try(self, checkpoint: str) -> bool:
        """False if there is no point in going on."""
        try:
            self._note(self._save(checkpoint))
        except FencedOff as error:
            log.error("no more backups: %s", error)
            self._fail(error)
            return False
        except (HeadgateError, OSError) as error:
            log.warning("%s was not backed up, the query goes on: %s", self._query, error)
            self._fail(error)
        except Exception as error:
            log.exception("%s was not backed up, the query goes on; this is a defect of Headgate", self._query)
            self._fail(error)
        return True

    def _save(self, checkpoint: str) -> Saved | None:
        if self._saver is None:
            self._saver = self._backup.saver(self._query, prepare=lower_priority)
        return self._saver.save(open_folder(checkpoint))

    def _note(self, saved: Saved | None) -> None:
        if saved is None:
            self._status = replace(self._status, problem=None)
            return
        problem = "; ".join(f"{name}: {why}" for name, why in saved.failed.items()) or None
        if problem is not None:
            log.warning("%s: saved, but now only any %d places may be lost: %s", self._query, saved.bears, problem)
        self._status = BackupStatus(
            batch=saved.manifest.batch,
            saved_at_s=time.time(),
            took_s=saved.took_s,
            state_bytes=saved.manifest.bytes,
            coded_bytes=self._status.coded_bytes + saved.manifest.own_bytes,
            backups=self._status.backups + 1,
            bears=saved.bears,
            failures=self._status.failures,
            problem=problem,
        )

    def _fail(self, error: Exception) -> None:
        self._status = replace(self._status, failures=self._status.failures + 1, problem=str(error))


def lower_priority() -> None:
    """Of the calling thread alone; Linux gives every thread a niceness of its own."""
    if sys.platform == "linux":
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
