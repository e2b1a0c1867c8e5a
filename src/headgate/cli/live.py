"""The live view: one line per query, redrawn a few times a second; plain lines where there is no terminal."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from headgate.core.durations import format_duration
from headgate.metrics.status import QueryStatus

REDRAW_S = 0.5
PLAIN_EVERY_S = 10.0

_COLOURS = {"runs": "green", "holds": "yellow", "idle": "dim"}


def table(statuses: list[QueryStatus]) -> Table:
    """Promise against reality."""
    made = Table(expand=True, pad_edge=False, box=None, header_style="bold")
    for heading in ("query", "promise", "late", "p50", "p99", "rows/s", "backlog", "gate", "why"):
        wide = heading == "why"
        justify = "left" if heading in ("query", "gate", "why") else "right"
        made.add_column(heading, justify=justify, no_wrap=True, overflow="ellipsis", ratio=1 if wide else None)  # type: ignore[arg-type]
    for status in statuses:
        made.add_row(*_cells(status))
    return made


def _cells(status: QueryStatus) -> list[Text]:
    late = Text(f"{status.violation_rate:.2%}", "green" if status.keeps_promise else "bold red")
    return [
        Text(status.query),
        Text(promise(status.deadline_s, status.slo)),
        late if status.deadline_s is not None else Text("-"),
        Text(_seconds(status.p50_s, status.estimated)),
        Text(_seconds(status.p99_s, status.estimated)),
        Text(f"{status.rows_per_s:,.0f}"),
        Text(f"{status.backlog_rows:,.0f}"),
        Text(status.gate, _COLOURS.get(status.gate, "")),
        Text(status.why, "dim"),
    ]


def promise(deadline_s: float | None, slo: float) -> str:
    return "in the slack" if deadline_s is None else f"{slo:.4g} in {deadline_s:g} s"


def _seconds(value: float | None, estimated: bool) -> str:
    return "-" if value is None else f"{'~' if estimated else ''}{format_duration(value)}"


def plain(statuses: list[QueryStatus]) -> str:
    """The same for a log file."""
    return "\n".join(
        f"{s.query}: {promise(s.deadline_s, s.slo)}, late {s.violation_rate:.2%}, p50 {_seconds(s.p50_s, s.estimated)},"
        f" p99 {_seconds(s.p99_s, s.estimated)}, backlog {s.backlog_rows:,.0f}, {s.gate}: {s.why}"
        for s in statuses
    )


class LiveView:
    """Draws in a thread of its own until closed; its failure never reaches the queries."""

    def __init__(
        self, statuses: Callable[[], list[QueryStatus]], headline: Callable[[], str], console: Console | None = None
    ) -> None:
        self._statuses = statuses
        self._headline = headline
        self._console = console or Console()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._draw, name="headgate-live", daemon=True)

    def __enter__(self) -> LiveView:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join(timeout=2.0)

    def _draw(self) -> None:
        if not self._console.is_terminal:
            self._print()
            return
        with Live(console=self._console, auto_refresh=False, transient=True) as live:
            while not self._ended.wait(REDRAW_S):
                live.update(Group(Text(self._headline(), "bold"), table(self._read())), refresh=True)

    def _print(self) -> None:
        while not self._ended.wait(PLAIN_EVERY_S):
            self._console.print(f"{self._headline()}\n{plain(self._read())}", highlight=False, soft_wrap=True)

    def _read(self) -> list[QueryStatus]:
        try:
            return self._statuses()
        except Exception:  # the application is being stopped: the last picture stays
            return []
