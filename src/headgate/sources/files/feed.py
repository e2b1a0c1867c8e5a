"""The feed of new files in a folder: what waits, take whole files, spread them over tasks.

The dataset whose latency is promised is a file, but the cost of a batch goes by rows. `rows` therefore counts rows
throughout (estimated, see :mod:`headgate.sources.files.rows`), and arrivals have one stamp per file.
"""

from __future__ import annotations

import sys
import time
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import accumulate, groupby

from fsspec.core import url_to_fs

from headgate.core.arrivals import Arrivals
from headgate.errors import StateError
from headgate.sources.feed import Offset, Pending, Range, Taken
from headgate.sources.files.config import FilesConfig
from headgate.sources.files.listing import Stopwatch, listing_of
from headgate.sources.files.log import FileLog
from headgate.sources.files.pieces import cut, spread
from headgate.sources.files.reader import FileRangeReader
from headgate.sources.files.rows import RowEstimator
from headgate.sources.files.segments import REMEDY, FileEntry

__all__ = ["FileLog", "FileRangeReader", "FilesConfig", "FilesFeed", "arrived_s"]

LISTING_SHARE = 0.05
"""At most this part of the time goes into listing the folder: a look that took 50 ms is followed by a second's rest."""


class FilesFeed:
    """New files in a folder, each read exactly once, in the order in which they were found.

    A file is known by its path. One that is written again under the same path is not read again; one that grows
    after it was found may be read in part: move finished files into the folder, as with Spark's own file source.
    """

    def __init__(self, options: Mapping[str, str], log: FileLog, *, stopwatch: Stopwatch = time.perf_counter) -> None:
        self.config = FilesConfig.parse(options)
        self._log = log
        self._listing = listing_of(self.config.path, self.config.path_glob_filter, stopwatch)
        self._estimator = RowEstimator(url_to_fs(self.config.path)[0], self.config.file_format, stopwatch)
        self._looked_at_s: float | None = None
        self._warned = False
        self._rows_from = 0
        self._rows_before = [0]

    def initial(self, now_s: float) -> Offset:
        return {"files": 0}

    def pending(self, start: Offset, now_s: float) -> Pending:
        first = self._position(start)
        self._look(now_s)
        self._count_rows(first)
        if first == len(self._log):
            return Pending(0, None)
        # Arrivals never fall from one entry to the next, see `arrived_s`: the first is the oldest.
        return Pending(self._rows(first, len(self._log)), self._stamp(self._log.entries(first, first + 1)[0]))

    def take(self, start: Offset, max_rows: int | None, now_s: float) -> Taken:
        first = self._position(start)
        self._look(now_s)
        self._count_rows(first)
        end = self._cut(first, max_rows)
        self._log.flush()  # before the offset leaves: it must mean the same files after a crash
        stamps = map(self._stamp, self._log.entries(first, end))
        runs = ((stamp_s, 0.0, len(list(same))) for stamp_s, same in groupby(stamps))
        return Taken({"files": end}, self._rows(first, end), Arrivals.of(runs))

    def ranges(self, start: Offset, end: Offset, tasks: int, row_work_s: float | None = None) -> Sequence[Range]:
        entries = self._log.entries(self._position(start), self._position(end))
        pieces = cut(entries, tasks, self.config.file_format)
        return [{"pieces": [list(piece) for piece in share]} for share in spread(pieces, tasks)]

    def next_arrival_s(self, start: Offset, now_s: float) -> float:
        due_s = now_s if self._looked_at_s is None else self._looked_at_s + self._rest_s()
        return due_s if now_s < due_s <= now_s + self._rest_s() else now_s + self._rest_s()

    def forget(self, end: Offset) -> None:
        """Nothing is dropped, a file must stay known as long as it may be in the folder; but the log is tidied."""
        self._log.compact()

    def _position(self, offset: Offset) -> int:
        """The number in an offset. Every offset handed out was durable, so one beyond that is not from this log."""
        number = offset.get("files")
        if type(number) is not int or number < 0:
            raise StateError(f"{offset!r} is no offset of a files source; start the query with a new checkpoint")
        if number > self._log.durable:
            raise StateError(
                f"{self._log.directory}: the checkpoint counts {number} files, but the file log has"
                f" {self._log.durable}; it was deleted, or is another query's: {REMEDY}"
            )
        return number

    def _rest_s(self) -> float:
        return max(self.config.poll_interval_s, self._listing.cost_s / LISTING_SHARE)

    def _look(self, now_s: float) -> None:
        """List the folder, unless that was done a moment ago."""
        before_s = self._looked_at_s
        if before_s is not None and 0 <= now_s - before_s < self._rest_s():
            return
        found = self._listing.new_files(self._log.paths, now_s)
        floor_s = self._log.last_seen_s if before_s is None else before_s
        arrivals = [(arrived_s(file.modified_s, floor_s, now_s), file.path, file.size_bytes) for file in found]
        self._log.add(((path, size_bytes, at_s) for at_s, path, size_bytes in sorted(arrivals)), now_s)
        self._looked_at_s = now_s
        if self._listing.only_folders and not len(self._log):
            self._warn_of_subfolders()

    def _warn_of_subfolders(self) -> None:
        """Once; Spark's own source would read them."""
        if not self._warned:
            path = self.config.path.rstrip("/")
            told = (
                f"path={path!r}: there are only folders in it, which are not read; write {path + '/*'!r} to read them"
            )
            print(f"headgate: WARNING: {told} (their names do not become columns)", file=sys.stderr, flush=True)
        self._warned = True

    def _stamp(self, entry: FileEntry) -> float:
        return entry.seen_s if self.config.arrival == "seen" else entry.modified_s

    def _count_rows(self, first: int) -> None:
        """Extend the running total of rows to every entry from `first` on; what lies before is never asked for."""
        if first < self._rows_from or first > self._rows_from + len(self._rows_before) - 1:
            self._rows_from, self._rows_before = first, [0]
        counted = self._rows_from + len(self._rows_before) - 1
        for rows in self._estimator.rows_of(self._log.entries(counted, len(self._log))):
            self._rows_before.append(self._rows_before[-1] + rows)

    def _rows(self, first: int, end: int) -> int:
        return self._rows_before[end - self._rows_from] - self._rows_before[first - self._rows_from]

    def _cut(self, first: int, max_rows: int | None) -> int:
        """Where a batch ends: as many whole files as the limits allow, and one if any waits."""
        waiting = len(self._log) - first
        files = min(waiting, self.config.max_files_per_trigger or waiting)
        if max_rows is not None:
            allowed = self._rows_before[first - self._rows_from] + max_rows
            files = min(files, bisect_right(self._rows_before, allowed) - 1 - (first - self._rows_from))
        if (most_bytes := self.config.max_bytes_per_trigger) is not None:
            sizes = accumulate(entry.size_bytes for entry in self._log.entries(first, first + files))
            files = bisect_right(list(sizes), most_bytes)
        return first + min(waiting, max(1, files))


def arrived_s(modified_s: float, floor_s: float | None, now_s: float) -> float:
    """When a file arrived, by its modification time, but neither before the look that did not show it nor after now.

    `floor_s` is the time of the look before: an old file that is copied or renamed in has not waited since it was
    written. After a restart it is the last find in the log, so that what came in the meantime is late as it is. At
    the very first look there is none: what was there before the query counts as arriving with it.
    """
    return now_s if floor_s is None else min(now_s, max(floor_s, modified_s))
