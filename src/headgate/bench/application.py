"""A contender's own Python and Spark: cells go in one by one, outcomes come out; none inherits another's warm JVM."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, replace
from pathlib import Path
from types import TracebackType

from headgate.bench.gauge import Gauge
from headgate.bench.plan import Cell, Contender, Outcome
from headgate.errors import HeadgateError

_LOOK_S = 0.1


class Application:
    """A fresh process for one contender; ``with Application(contender) as app: app.run(cell)``."""

    def __init__(
        self,
        contender: Contender,
        cores: int | None = None,
        *,
        show: bool = False,
        kafka: str | None = None,
        gauge: Gauge | None = None,
    ) -> None:
        """`kafka` is a broker's address: reports then come from a topic instead of the trace source.

        With a `gauge`, outcomes tell how fast the machine was.
        """
        self.contender = contender
        self._gauge = gauge
        self._kafka = kafka
        self._cores = cores
        self._show = show
        self._cells = 0
        self._folder = tempfile.TemporaryDirectory(prefix="headgate-bench-", ignore_cleanup_errors=True)
        self._process: subprocess.Popen[str] | None = None

    def run(self, cell: Cell) -> Outcome:
        """Run `cell` and wait for what it measured."""
        process = self._process or self._start()
        assert process.stdin is not None
        self._cells += 1
        answer = Path(self._folder.name) / f"outcome-{self._cells}.json"
        with contextlib.suppress(BrokenPipeError):  # it has ended: said below with its last words
            process.stdin.write(json.dumps({"cell": cell.to_json(), "answer": str(answer)}) + "\n")
            process.stdin.flush()
        while not answer.exists():
            if process.poll() is not None and not answer.exists():
                raise HeadgateError(
                    f"the run of {self.contender.title} ended with code {process.returncode}:\n{self._last_words()}"
                )
            time.sleep(_LOOK_S)
        found = Outcome(**json.loads(answer.read_text()))
        if self._gauge is None:
            return found
        slowness = self._gauge.slowness(found.began_at_s, found.began_at_s + found.measured_s)
        return replace(found, slowness=slowness)

    def _start(self) -> subprocess.Popen[str]:
        setting = Path(self._folder.name) / "contender.json"
        settings = {"contender": asdict(self.contender), "cores": self._cores, "show": self._show, "kafka": self._kafka}
        setting.write_text(json.dumps(settings))
        # Spark's own words go to a file; they are shown only if the run fails.
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "headgate.bench.contender", str(setting)],
                stdin=subprocess.PIPE,
                stdout=None if self._show else log,
                stderr=log,
                text=True,
                env=os.environ | {"PYTHONWARNINGS": "ignore"},
            )
        return self._process

    @property
    def _log(self) -> Path:
        return Path(self._folder.name) / "log"

    def _last_words(self) -> str:
        return "\n".join(self._log.read_text(errors="replace").splitlines()[-15:])

    def __enter__(self) -> Application:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            assert self._process.stdin is not None
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()  # the end of its input is the end of its work
            try:
                self._process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._folder.cleanup()
