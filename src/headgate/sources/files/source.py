"""``format("headgate-files")``: new files in a folder, behind a gate.

    hg.readStream.format("headgate-files").option("fileFormat", "json").schema(schema).load("/data/in")

Which files have been seen is logged beside the query's checkpoint; each source of a query has a log of its own, named
by its offsets, so that a restarted query finds the right one whatever order its sources come up in.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence

from pyspark.sql.datasource import DataSource, DataSourceStreamReader
from pyspark.sql.types import StructType

from headgate.errors import BadParameter
from headgate.sources.feed import Feed, Offset, Pending, Range, Taken
from headgate.sources.files.config import FilesConfig
from headgate.sources.files.feed import FilesFeed
from headgate.sources.files.log import FileLog
from headgate.sources.files.pieces import Piece
from headgate.sources.files.reader import FileRangeReader
from headgate.sources.files.schema import arrow_schema, default_schema
from headgate.sources.options import TASKS, gate_of, positive_int, text_of
from headgate.sources.reader import GatedReader

FORMAT = "headgate-files"


class FilesSource(DataSource):
    """Options: path, fileFormat (json, csv, parquet, text), arrival, pollInterval, those of Spark's: docs/files.md."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> StructType:
        return default_schema(FilesConfig.parse(self.options))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 (Spark's name)
        return FilesReader(dict(self.options), schema)


class FilesReader(GatedReader):
    """Gated reader over a folder."""

    needs_state = True

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        config = FilesConfig.parse(options)
        super().__init__(
            gate=gate_of(options),
            read_range=FileRangeReader(config, arrow_schema(config, schema)),
            max_rows=None,
            tasks=positive_int(options, TASKS, 2) or 2,
        )
        self._options = options

    def make_feed(self, state_dir: str | None) -> Feed:
        folder = text_of(self._options, "stateLocation") or state_dir
        if folder is None:
            raise BadParameter(
                "stateLocation", None, "the log of files seen needs a place that survives a restart",
                'start the query with Headgate.start(), or add .option("stateLocation", "/a/folder")',
            )  # fmt: skip
        return LoggedFiles(lambda log: FilesFeed(self._options, FileLog(f"{folder}/files-{log}")))

    def parts_of(self, share: Range) -> list[str]:
        return [Piece(*piece).title for piece in share["pieces"]]


class LoggedFiles:
    """A files feed whose offsets name the log that they count in."""

    def __init__(self, open_feed: Callable[[str], FilesFeed]) -> None:
        self._open_feed = open_feed
        self._feeds: dict[str, FilesFeed] = {}

    def initial(self, now_s: float) -> Offset:
        log = uuid.uuid4().hex[:12]
        return {**self._feed({"log": log}).initial(now_s), "log": log}

    def pending(self, start: Offset, now_s: float) -> Pending:
        return self._feed(start).pending(start, now_s)

    def take(self, start: Offset, max_rows: int | None, now_s: float) -> Taken:
        taken = self._feed(start).take(start, max_rows, now_s)
        return Taken({**taken.end, "log": start["log"]}, taken.rows, taken.arrivals)

    def ranges(self, start: Offset, end: Offset, tasks: int, row_work_s: float | None = None) -> Sequence[Range]:
        # The log of `end`: Spark makes a new beginning for a first batch that it runs again.
        return self._feed(end).ranges(start, end, tasks, row_work_s)

    def next_arrival_s(self, start: Offset, now_s: float) -> float:
        return self._feed(start).next_arrival_s(start, now_s)

    def freeze(self, now_s: float) -> None:
        """Nothing to do: a feed that is asked about the same moment again looks no further."""

    def forget(self, end: Offset) -> None:
        self._feed(end).forget(end)

    def _feed(self, offset: Offset) -> FilesFeed:
        log = str(offset["log"])
        if log not in self._feeds:
            self._feeds[log] = self._open_feed(log)
        return self._feeds[log]
