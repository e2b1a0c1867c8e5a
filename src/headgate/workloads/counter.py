"""The smallest workload: records that carry their own number, so that lost and doubled ones show."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headgate.workloads.columns import record_batch

SCHEMA_DDL = "timestamp timestamp, value bigint"

# PySpark refuses batches of a Python source whose timestamps are not microseconds in UTC.
_SCHEMA = pa.schema([("timestamp", pa.timestamp("us", tz="UTC")), ("value", pa.int64())])


@dataclass(frozen=True, slots=True)
class Counter:
    """Record i has the value i."""

    schema_ddl: ClassVar[str] = SCHEMA_DDL

    def batch(self, first: int, last: int, stamps_s: NDArray[np.float64]) -> pa.RecordBatch:
        """The records first..last-1, which arrived at `stamps_s` (seconds since the epoch)."""
        stamps_us = np.rint(np.asarray(stamps_s) * 1e6).astype(np.int64)
        return record_batch([stamps_us, np.arange(first, last, dtype=np.int64)], _SCHEMA)
