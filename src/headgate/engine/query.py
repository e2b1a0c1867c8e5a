"""The handle of a started query: Spark's own, plus what Headgate knows, across restarts."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql.streaming import StreamingQuery

    from headgate.core.batch import BatchRecord
    from headgate.metrics.summary import QuerySummary
    from headgate.state.protection import BackupStatus, Protection

log = logging.getLogger("headgate")

MAX_RESTARTS = 3
"""Within :data:`RESTART_WINDOW_S`; after that the failure is the user's to see."""

RESTART_WINDOW_S = 300.0

VERDICT_WAIT_S = 15.0
"""How long a waiting caller gives Spark's report of an end to arrive, which decides whether the query goes on."""


class GatedQuery:
    """Behaves as the :class:`~pyspark.sql.streaming.StreamingQuery` it stands for (``stop``, ``status``, ...).

    If a gate process is killed, Spark ends the query with an error; Headgate starts it again from its checkpoint and
    this handle goes on standing for it.
    """

    def __init__(
        self,
        name: str,
        start: Callable[[], StreamingQuery],
        lost_its_gate: Callable[[str], bool],
        summary: Callable[[], QuerySummary | None],
        batches: Callable[[], list[BatchRecord]],
        protection: Protection | None = None,
    ) -> None:
        self._name = name
        self._start = start
        self._lost_its_gate = lost_its_gate
        self._summary = summary
        self._batches = batches
        self._protection = protection
        self._stopped = False
        self._changed = threading.Condition()
        self._restarts: list[float] = []
        self._ended: StreamingQuery | None = None
        self._restarting = False
        self._query = start()

    @property
    def name(self) -> str:
        return self._name

    @property
    def spark_query(self) -> StreamingQuery:
        """The present :class:`StreamingQuery`; another one after a restart."""
        return self._query

    @property
    def summary(self) -> QuerySummary | None:
        """Promise against reality so far; None before the first batch."""
        return self._summary()

    @property
    def batches(self) -> list[BatchRecord]:
        """The newest finished batches with their decisions."""
        return self._batches()

    @property
    def backup(self) -> BackupStatus | None:
        """How the backups of its state are going; None if none were asked for."""
        return None if self._protection is None else self._protection.status

    @property
    def restarts(self) -> int:
        """How often it was started again within the last minutes."""
        return len(self._restarts)

    @property
    def isActive(self) -> bool:  # noqa: N802 (Spark's name)
        """Whether it runs or is just being started again."""
        return self._restarting or bool(self._query.isActive)

    def stop(self) -> None:
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
        self._query.stop()
        self.end_backups()

    def end_backups(self) -> None:
        """Wait for the last one, of what was committed since the one before."""
        if self._protection is not None:
            self._protection.stop()

    def awaitTermination(self, timeout: float | None = None) -> bool | None:  # noqa: N802 (Spark's name)
        """As Spark's: None without a timeout, else whether the query ended in time; raises if it failed."""
        give_up_s = None if timeout is None else time.monotonic() + timeout
        while True:
            current = self._query
            try:
                if give_up_s is None:
                    return current.awaitTermination()
                left_s = max(0.001, give_up_s - time.monotonic())
                return current.awaitTermination(left_s)  # type: ignore[arg-type] # Spark takes fractions of a second
            except Exception:
                if not self._goes_on(current):
                    raise

    def _goes_on(self, failed: StreamingQuery) -> bool:
        """Wait for the verdict of :meth:`ended`; True if another run has taken the failed one's place."""
        with self._changed:
            known = lambda: self._stopped or self._ended is failed or self._query is not failed  # noqa: E731
            self._changed.wait_for(known, VERDICT_WAIT_S)
            return self._query is not failed

    def ended(self, run: StreamingQuery, failure: str | None) -> bool:
        """Spark reports the end of `run`; start it again if its gate was lost. True if the query goes on."""
        with self._changed:
            if self._query is not run:
                return True
            lost = failure is not None and not self._stopped and self._lost_its_gate(failure)
            self._restarting = lost and self._within_limit()
        fresh = self._start_again() if self._restarting else None
        with self._changed:
            self._query, self._ended, self._restarting = fresh or run, run, False
            self._changed.notify_all()
        if fresh is not None and self._stopped:  # stopped while it was coming up
            fresh.stop()
        return fresh is not None

    def _start_again(self) -> StreamingQuery | None:
        log.warning("%s: a gate process was lost; starting again from its checkpoint", self._name)
        try:
            return self._start()
        except Exception:
            log.exception("%s could not be started again", self._name)
            return None

    def _within_limit(self) -> bool:
        now_s = time.monotonic()
        self._restarts = [at_s for at_s in self._restarts if now_s - at_s < RESTART_WINDOW_S]
        if len(self._restarts) >= MAX_RESTARTS:
            return False
        self._restarts.append(now_s)
        return True

    def __getattr__(self, attribute: str) -> Any:
        return getattr(self._query, attribute)

    def __repr__(self) -> str:
        return f"<GatedQuery {self._name!r} {'active' if self.isActive else 'ended'}>"
