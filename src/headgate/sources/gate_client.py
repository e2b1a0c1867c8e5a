"""A gate's side of the conversation: ask, wait, and fail open.

Whatever happens to the coordinator, the query goes on: a lost connection opens the gate at once, an answer that takes
longer than half a second opens it then, and a warning says so once. It tries to come back every few seconds.
"""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from headgate import wire
from headgate.sources.feed import Taken

REPLY_TIMEOUT_S = 0.5
"""A healthy coordinator answers within a millisecond; with this a query goes on as plain Spark within a second."""

RETRY_AFTER_S = 3.0

_LOST = (OSError, EOFError, ValueError, KeyError)


@dataclass(frozen=True, slots=True)
class Opened:
    """Start now; `max_rows` bounds a native source."""

    max_rows: int | None = None
    row_work_s: float | None = None
    """What a row has taken a core so far, if that is known."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Ask again after so long, or when woken, or when clearly more has arrived than at `rate_rows_s`."""

    seconds: float
    rate_rows_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Nothing:
    """Tell Spark that there is nothing new; look at the source again within `seconds`."""

    seconds: float = 0.0


Verdict = Opened | Wait | Nothing


class GateClient:
    """One gate's connection; made lazily, because Spark pickles readers that never ask."""

    def __init__(self, folder: str, gate: str) -> None:
        self._address = wire.Address(folder)
        self._gate = gate
        self._connection: Connection | None = None
        self._retry_at_s = 0.0
        self._warned: set[str] = set()
        self.state_dir: str | None = None
        """Where this query's sources may keep logs of their own: beside its checkpoint."""
        self.started_at_s: float | None = None
        """When the query was started: one moment for all of its sources."""
        self.deadline_s: float | None = None

    def greet(self, patience_s: float = 0.0) -> bool:
        """Connect and learn whose gate this is, trying for `patience_s`; True once that has worked."""
        give_up_s = time.monotonic() + patience_s
        while not (greeted := self._greet_once()) and time.monotonic() < give_up_s:
            time.sleep(0.2)
            self._retry_at_s = 0.0
        return greeted

    def _greet_once(self) -> bool:
        if self._connection is not None:
            return True
        if time.monotonic() < self._retry_at_s:
            return False
        try:
            self._connection, proof = wire.connect(self._address, REPLY_TIMEOUT_S)
            answer = self._question({"op": "hello", "gate": self._gate, "pid": os.getpid(), "proof": proof})
        except _LOST as error:
            self._lose(error)
            return False
        if answer.get("unknown"):
            self._warn("this gated DataFrame was not started with Headgate.start(): it runs without a deadline")
        self.state_dir = answer.get("state_dir")
        self.started_at_s = answer.get("started_at_s")
        self.deadline_s = answer.get("deadline_s")
        return True

    def ask(self, rows: int | None, oldest_at_s: float | None, now_s: float, *, whole: bool = False) -> Verdict:
        """Ask whether a batch may start; anything but a sound answer opens the gate.

        `whole` says that the batch will hold all that waits: a source that is only watched cannot take a part.
        """
        if not self.greet():
            return Opened()
        age_s = None if oldest_at_s is None else max(0.0, now_s - oldest_at_s)
        try:
            question = {"op": "ask", "rows": rows, "age_s": age_s}
            return _verdict(self._question(question | {"whole": True} if whole else question))
        except _LOST as error:
            self._lose(error)
            return Opened()

    def took(self, taken: Taken, left_rows: int) -> None:
        """Tell what was cut into the batch."""
        message = {"op": "took", "rows": taken.rows, "left": left_rows, "arrivals": taken.arrivals.to_json()}
        self._tell(message | ({"skipped": taken.skipped_rows} if taken.skipped_rows else {}))

    def planned(self, shares: list[str]) -> None:
        """Tell what each task of the batch will read, in a few words."""
        self._tell({"op": "planned", "shares": shares})

    def wait(self, seconds: float) -> bool:
        """Sleep for so long, or until woken by the coordinator or by its loss: then True."""
        if self._connection is None:
            time.sleep(max(0.0, seconds))
            return False
        try:
            if not self._connection.poll(max(0.0, seconds)):
                return False
            wire.receive(self._connection)  # "again": the caller asks again whatever it says
        except _LOST as error:
            self._lose(error)
        return True

    def close(self) -> None:
        """Say goodbye, so that this end is not taken for a crash."""
        self._tell({"op": "bye"})
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _tell(self, message: wire.Message) -> None:
        if self._connection is None:
            return
        try:
            wire.send(self._connection, message)
        except _LOST as error:
            self._lose(error)

    def _question(self, message: wire.Message) -> wire.Message:
        assert self._connection is not None
        wire.send(self._connection, message)
        give_up_s = time.monotonic() + REPLY_TIMEOUT_S
        while self._connection.poll(max(0.0, give_up_s - time.monotonic())):
            answer = wire.receive(self._connection)
            if "again" not in answer:  # a wake-up that crossed our question
                return answer
        raise TimeoutError(f"no answer within {REPLY_TIMEOUT_S:g} s")

    def _lose(self, error: BaseException) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        self._retry_at_s = time.monotonic() + RETRY_AFTER_S
        self._warn(f"the coordinator does not answer ({error!r}): the query goes on as plain Spark, without a deadline")

    def _warn(self, text: str) -> None:
        kind = text[:30]  # the same kind of trouble is told once per query, not once per batch
        if kind not in self._warned:
            self._warned.add(kind)
            print(f"headgate: WARNING: {text}", file=sys.stderr, flush=True)

    def __getstate__(self) -> dict[str, Any]:
        return {"folder": self._address.folder, "gate": self._gate}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["folder"], state["gate"])  # type: ignore[misc]


def _verdict(answer: wire.Message) -> Verdict:
    if answer.get("open"):
        limit, row_work_s = answer.get("max_rows"), answer.get("row_work_s")
        return Opened(
            None if limit is None else max(1, int(limit)), None if row_work_s is None else max(0.0, float(row_work_s))
        )
    if "hold_s" in answer:
        return Wait(float(answer["hold_s"]), float(answer.get("rate_rows_s", 0.0)))
    if "idle_s" in answer:
        return Nothing(float(answer["idle_s"]))
    if answer.get("pass"):
        return Nothing()
    raise ValueError(f"not an answer: {answer!r:.80}")
