"""The port between a native source and the gate: what waits, take some of it, read it.

A feed lives in the planning process that Spark runs beside the driver, one per source and query. It knows
offsets and arrivals and nothing of deadlines; :mod:`headgate.sources.reader` asks it and talks to the coordinator.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import pyarrow as pa

    from headgate.core.arrivals import Arrivals

Offset = dict[str, Any]
"""A position in the source, as JSON: Spark keeps it in the checkpoint, so it must carry all that replaying needs."""

Range = Mapping[str, Any]
"""One task's share of a batch: small, picklable, and enough for an executor to read it."""


@dataclass(frozen=True, slots=True)
class Pending:
    """What waits behind an offset: how many rows (or the best estimate), and when the oldest arrived."""

    rows: int
    oldest_at_s: float | None

    @property
    def empty(self) -> bool:
        return self.rows <= 0


@dataclass(frozen=True, slots=True)
class Taken:
    """A batch as the feed cut it: where it ends, how many rows it holds, when they arrived."""

    end: Offset
    rows: int
    arrivals: Arrivals
    skipped_rows: int = 0
    """Rows that were gone before they could be read, and that the user said to go on without."""


class Feed(Protocol):
    """A source that can say what waits and can be told how much of it to take.

    All times are wall-clock seconds since the epoch, because arrivals are stamped by the outside world.
    """

    def initial(self, now_s: float) -> Offset:
        """Where a query without a checkpoint begins."""

    def pending(self, start: Offset, now_s: float) -> Pending:
        """What has arrived after `start`. Must be cheap: it is asked several times per batch."""

    def take(self, start: Offset, max_rows: int | None, now_s: float) -> Taken:
        """Cut pending rows into a batch of at most `max_rows`, but at least one dataset if any waits.

        The oldest, unless the source has parts and was told to serve them by another rule.
        """

    def ranges(self, start: Offset, end: Offset, tasks: int, row_work_s: float | None = None) -> Sequence[Range]:
        """Cut what lies between two offsets into at most `tasks` shares; the same offsets give the same rows.

        If it is known how long a core works on a row, small batches may have fewer shares.
        """

    def next_arrival_s(self, start: Offset, now_s: float) -> float:
        """When to look again if nothing is pending: the next known arrival, or `now_s` plus a polling interval."""

    def freeze(self, now_s: float) -> None:
        """From now on nothing more arrives: only what is there at `now_s` will be asked for."""

    def forget(self, end: Offset) -> None:
        """Everything up to `end` is committed and will never be asked for again."""


class RangeReader(Protocol):
    """Reads one range in an executor; holds only what must travel there."""

    def __call__(self, share: Range) -> Iterator[pa.RecordBatch]: ...
