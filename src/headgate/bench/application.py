"""A contender's own Spark application: cells go in one by one, outcomes come out, told with the machine's speed."""

from __future__ import annotations

from dataclasses import replace
from types import TracebackType

from headgate.bench.gauge import Gauge
from headgate.bench.jvm import Jvm
from headgate.bench.plan import Cell, Contender, Outcome

BEFORE_S = 10.0
"""What the host took away just before the measured time still makes its first batches late."""


class Application:
    """A fresh Spark for one contender; ``with Application(contender) as app: app.run(cell)``."""

    def __init__(self, contender: Contender, jvm: Jvm | None = None, *, gauge: Gauge | None = None) -> None:
        """It runs in `jvm`, which stays, or in one of its own. With a `gauge`, outcomes tell the machine's speed."""
        self.contender = contender
        self._jvm = jvm or Jvm()
        self._owns_jvm = jvm is None
        self._number = self._jvm.new_application()
        self._gauge = gauge

    def run(self, cell: Cell) -> Outcome:
        """Run `cell` and wait for what it measured."""
        found = self._jvm.run(self.contender, self._number, cell)
        if self._gauge is None:
            return found
        end_s = found.began_at_s + found.measured_s
        slowness = self._gauge.slowness(found.began_at_s, end_s)
        return replace(found, slowness=slowness, stolen=self._gauge.theft(found.began_at_s - BEFORE_S, end_s))

    def __enter__(self) -> Application:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._owns_jvm:
            self._jvm.close()
