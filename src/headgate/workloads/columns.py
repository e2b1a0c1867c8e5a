"""NumPy to Arrow without a copy, and without pandas: ``pa.array`` imports it where it is installed.

That import takes seconds on a busy machine, in every new Python worker, in the middle of a batch.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa


def record_batch(columns: list[np.ndarray[Any, Any]], schema: pa.Schema) -> pa.RecordBatch:
    """The columns under `schema`, whose types must have the width of the arrays'."""
    arrays = [_column(values, field.type) for values, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _column(values: np.ndarray[Any, Any], kind: pa.DataType) -> pa.Array:
    if values.dtype.itemsize * 8 != kind.bit_width:
        raise TypeError(f"{values.dtype} does not fit {kind}")
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(np.ascontiguousarray(values))])
