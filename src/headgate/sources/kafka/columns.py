"""Messages to Arrow columns, as Spark's own Kafka source has them.

Built from buffers by hand: ``pa.array`` would import pandas, where that is installed, in every Python worker.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from headgate.sources.kafka.positions import Partition

if TYPE_CHECKING:
    from confluent_kafka import Message

SCHEMA_DDL = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, timestampType int"
)
HEADERS_DDL = "headers array<struct<key: string, value: binary>>"

_STAMP = pa.timestamp("us", tz="UTC")
_HEADER = pa.struct([("key", pa.string()), ("value", pa.binary())])
_FIELDS = [
    ("key", pa.binary()), ("value", pa.binary()), ("topic", pa.string()), ("partition", pa.int32()),
    ("offset", pa.int64()), ("timestamp", _STAMP), ("timestampType", pa.int32()),
]  # fmt: skip
SCHEMA = pa.schema(_FIELDS)
SCHEMA_WITH_HEADERS = pa.schema([*_FIELDS, ("headers", pa.list_(_HEADER))])


def schema_ddl(*, with_headers: bool) -> str:
    return f"{SCHEMA_DDL}, {HEADERS_DDL}" if with_headers else SCHEMA_DDL


def record_batch(partition: Partition, messages: Sequence[Message], *, with_headers: bool) -> pa.RecordBatch:
    """Messages of one partition as a batch.

    Every call per record counts, so the getters are mapped as they are: a generator would cost twice as much.
    """
    rows, kind = len(messages), type(messages[0])
    stamps = np.fromiter(chain.from_iterable(map(kind.timestamp, messages)), np.int64, 2 * rows).reshape(rows, 2)
    columns = [
        _binary(list(map(kind.key, messages))),
        _binary(list(map(kind.value, messages))),
        _same(partition.topic.encode(), rows),
        _numbers(np.full(rows, partition.number, np.int32), pa.int32()),
        _numbers(_offsets(messages), pa.int64()),
        _numbers(stamps[:, 1] * 1000, _STAMP),
        # librdkafka counts kinds of timestamps from 0, "not available"; Java, and so Spark, has that as -1.
        _numbers(stamps[:, 0].astype(np.int32) - np.int32(1), pa.int32()),
    ]
    if not with_headers:
        return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)
    columns.append(_headers(list(map(kind.headers, messages))))
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA_WITH_HEADERS)


def _offsets(messages: Sequence[Message]) -> np.ndarray[Any, Any]:
    """They rise: without a gap between the first and the last, they need not be asked for one by one."""
    first, last, rows = messages[0].offset(), messages[-1].offset(), len(messages)
    if last - first == rows - 1:
        return np.arange(first, last + 1, dtype=np.int64)
    return np.fromiter(map(type(messages[0]).offset, messages), np.int64, rows)


def _numbers(values: np.ndarray[Any, Any], kind: pa.DataType) -> pa.Array:
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(np.ascontiguousarray(values))])


def _same(text: bytes, rows: int) -> pa.Array:
    """One text in every row."""
    offsets = np.arange(rows + 1, dtype=np.int32) * len(text)
    return pa.Array.from_buffers(pa.string(), rows, [None, pa.py_buffer(offsets), pa.py_buffer(text * rows)])


def _binary(values: Sequence[bytes | None], kind: pa.DataType | None = None) -> pa.Array:
    rows, validity = len(values), None
    if None in values:
        there = np.fromiter((value is not None for value in values), np.bool_, rows)
        validity = pa.py_buffer(np.packbits(there, bitorder="little"))
        values = [value or b"" for value in values]
    offsets = np.zeros(rows + 1, np.int32)
    np.cumsum(np.fromiter(map(len, values), np.int32, rows), out=offsets[1:])  # type: ignore[arg-type]
    data = pa.py_buffer(b"".join(values))  # type: ignore[arg-type]
    return pa.Array.from_buffers(kind or pa.binary(), rows, [validity, pa.py_buffer(offsets), data])


def _headers(rows: Sequence[list[tuple[str, bytes | None]] | None]) -> pa.Array:
    """Null where a record has none, as in Spark."""
    flat = [header for headers in rows for header in headers or ()]
    keys = _binary([key.encode() for key, _ in flat], pa.string())
    structs = pa.StructArray.from_arrays([keys, _binary([value for _, value in flat])], fields=list(_HEADER))
    offsets = np.zeros(len(rows) + 1, np.int32)
    np.cumsum(np.fromiter((len(headers or ()) for headers in rows), np.int32, len(rows)), out=offsets[1:])
    there = np.fromiter((headers is not None for headers in rows), np.bool_, len(rows))
    validity = pa.py_buffer(np.packbits(there, bitorder="little"))
    return pa.Array.from_buffers(pa.list_(_HEADER), len(rows), [validity, pa.py_buffer(offsets)], children=[structs])
