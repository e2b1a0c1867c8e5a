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

log = logging.getLogger("headgate")

MAX_RESTARTS = 3
"""Within :data:`RESTART_WINDOW_S`; after that the failure is the user's to see."""

RESTART_WINDOW_S = 300.0


class GatedQuery:
    """Behaves as the :class:`~pyspark.sql.streaming.StreamingQuery` it stands for (``stop``, ``status``, ...).

    If a gate process is killed, Spark ends the query with an error; Headgate starts it again from its checkpoint and
    this handle goes on standing for it.
    """

    def __init__(
        self,
        name: str,
        start: Callable[[], StreamingQuery],
        may_restart: Callable[[str], bool],
        summary: Callable[[], QuerySummary | None],
        batches: Callable[[], list[BatchRecord]],
    ) -> None:
        self._name = name
        self._start = start
        self._may_restart = may_restart
        self._summary = summary
        self._batches = batches
        self._stopped = threading.Event()
        self._restarting = threading.Lock()
        self._restarts: list[float] = []
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
    def restarts(self) -> int:
        return len(self._restarts)

    def stop(self) -> None:
        self._stopped.set()
        with self._restarting:
            self._query.stop()

    def awaitTermination(self, timeout: float | None = None) -> bool | None:  # noqa: N802 (Spark's name)
        """As Spark's: None without a timeout, else whether the query ended in time; raises if it failed."""
        give_up_s = None if timeout is None else time.monotonic() + timeout
        while True:
            current = self._query
            left_s = None if give_up_s is None else max(0.001, give_up_s - time.monotonic())
            try:
                ended = current.awaitTermination(None if left_s is None else max(1, round(left_s)))
            except Exception as error:
                if not self.restart_if_crashed(current, str(error)):
                    raise
                continue
            if ended is False and give_up_s is not None and time.monotonic() < give_up_s - 0.5:
                continue
            return ended

    def restart_if_crashed(self, failed: StreamingQuery, failure: str) -> bool:
        """Start again if `failed` died with its gate process; True if the query runs on (whoever restarted it)."""
        with self._restarting:
            if self._stopped.is_set():
                return False
            if self._query is not failed:
                return True
            if not self._may_restart(failure) or not self._within_limit():
                return False
            log.warning("%s: a gate process was lost; started again from its checkpoint", self._name)
            self._query = self._start()
            return True

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
        return f"<GatedQuery {self._name!r} {'active' if self._query.isActive else 'ended'}>"
