"""A thread for work that must not delay decisions: py4j calls, files. Runs what it is given, in order."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable

log = logging.getLogger("headgate")


class Worker:
    """One background thread; a task that fails is told once per kind and does not stop the rest."""

    def __init__(self, name: str) -> None:
        self._tasks: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._warned: set[str] = set()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def post(self, task: Callable[[], None]) -> None:
        self._tasks.put(task)

    def finish(self, timeout_s: float) -> None:
        """Do what has been posted, then end."""
        self._tasks.put(None)
        self._thread.join(timeout_s)

    def _run(self) -> None:
        while (task := self._tasks.get()) is not None:
            try:
                task()
            except Exception as error:
                kind = type(error).__name__
                if kind not in self._warned:
                    self._warned.add(kind)
                    log.warning(
                        "Headgate's own bookkeeping failed (%r); queries are not affected", error, exc_info=error
                    )
