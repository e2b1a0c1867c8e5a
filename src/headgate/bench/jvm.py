"""A Python process with a JVM in which Spark applications run one after another: tasks go in, outcomes come out.

A JVM goes on compiling for a quarter of an hour under Spark's streaming, and the fewer batches a contender runs the
longer it takes. In a JVM of its own each contender would be measured together with its compiler; in a common one, which
was driven in before, none of them is.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from types import TracebackType

from headgate.bench.plan import Cell, Contender, Outcome
from headgate.errors import HeadgateError

_LOOK_S = 0.1


class Jvm:
    """``with Jvm() as jvm: jvm.run(contender, jvm.new_application(), cell)``."""

    def __init__(self, cores: int | None = None, *, show: bool = False, kafka: str | None = None) -> None:
        """`kafka` is a broker's address: reports then come from a topic instead of the trace source."""
        self.cores = cores
        self._settings = {"cores": cores, "show": show, "kafka": kafka}
        self._applications = itertools.count(1)
        self._answers = itertools.count(1)
        self._folder = tempfile.TemporaryDirectory(prefix="headgate-bench-", ignore_cleanup_errors=True)
        self._process: subprocess.Popen[str] | None = None

    def new_application(self) -> int:
        """A number for one more Spark application. It starts with its first cell; the one before it ends then."""
        return next(self._applications)

    def run(self, contender: Contender, application: int, cell: Cell) -> Outcome:
        """Run `cell` and wait for what it measured."""
        process = self._process or self._start()
        assert process.stdin is not None
        answer = Path(self._folder.name) / f"outcome-{next(self._answers)}.json"
        task = {"contender": asdict(contender), "application": application, "cell": cell.to_json()}
        with contextlib.suppress(BrokenPipeError):  # it has ended: said below with its last words
            process.stdin.write(json.dumps(task | {"answer": str(answer)}) + "\n")
            process.stdin.flush()
        while not answer.exists():
            if process.poll() is not None and not answer.exists():
                raise HeadgateError(
                    f"the run of {contender.title} ended with code {process.returncode}:\n{self._last_words()}"
                )
            time.sleep(_LOOK_S)
        return Outcome(**json.loads(answer.read_text()))

    def _start(self) -> subprocess.Popen[str]:
        settings = Path(self._folder.name) / "settings.json"
        settings.write_text(json.dumps(self._settings))
        # Spark's own words go to a file; they are shown only if the run fails.
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "headgate.bench.contender", str(settings)],
                stdin=subprocess.PIPE,
                stdout=None if self._settings["show"] else log,
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

    def close(self) -> None:
        """The end of its input is the end of its work."""
        if self._process is not None:
            assert self._process.stdin is not None
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
            try:
                self._process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._folder.cleanup()

    def __enter__(self) -> Jvm:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
