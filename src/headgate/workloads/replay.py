"""Replays the rows of a Parquet file, over and over, at the rate that the trace is given."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headgate.errors import BadParameter

if TYPE_CHECKING:
    import pyarrow as pa


class Replay:
    """Record `i` is row `i` modulo the file's length; its own columns are kept as they are."""

    def __init__(self, path: str) -> None:
        if not Path(path).is_file():
            raise BadParameter("workload", f"replay:{path}", "there is no such file", "name a readable Parquet file")
        self.path = path

    @cached_property
    def _table(self) -> pa.Table:
        import pyarrow.parquet as pq

        table = pq.read_table(self.path).combine_chunks()
        if not table.num_rows:
            raise BadParameter("workload", f"replay:{self.path}", "the file has no rows", "name one that has")
        return table

    @property
    def schema_ddl(self) -> str:
        from pyspark.sql.pandas.types import from_arrow_schema

        return ", ".join(f"`{f.name}` {f.dataType.simpleString()}" for f in from_arrow_schema(self._table.schema))

    def batch(self, first: int, last: int, stamps_s: np.ndarray) -> pa.RecordBatch:
        rows = np.arange(first, last) % self._table.num_rows
        return self._table.take(rows).combine_chunks().to_batches()[0]

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path}  # the rows are read again where they are needed
