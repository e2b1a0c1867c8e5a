"""Messages as Arrow: the columns of Spark's own Kafka source."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from headgate.sources.kafka.columns import SCHEMA, SCHEMA_WITH_HEADERS, record_batch
from headgate.sources.kafka.positions import Partition

Header = tuple[str, bytes | None]


class Made:
    """As much of a message as is read."""

    def __init__(
        self, offset: int, value: bytes | None, key: bytes | None = None, headers: list[Header] | None = None
    ) -> None:
        self._offset, self._value, self._key, self._headers = offset, value, key, headers

    def offset(self) -> int:
        return self._offset

    def value(self) -> bytes | None:
        return self._value

    def key(self) -> bytes | None:
        return self._key

    def headers(self) -> list[Header] | None:
        return self._headers

    def timestamp(self) -> tuple[int, int]:
        return 1, 1_500 + self._offset


def batch(*messages: Made, with_headers: bool = False) -> pa.RecordBatch:
    made: Any = messages
    return record_batch(Partition("ördér", 3), made, with_headers=with_headers)


def test_columns() -> None:
    found = batch(Made(7, b"x", b"k"), Made(8, b"", None), Made(9, None, b""))
    found.validate(full=True)
    assert found.schema == SCHEMA
    rows = found.to_pylist()
    assert [row["value"] for row in rows] == [b"x", b"", None]
    assert [row["key"] for row in rows] == [b"k", None, b""]
    assert {row["topic"] for row in rows} == {"ördér"} and {row["partition"] for row in rows} == {3}
    assert [row["offset"] for row in rows] == [7, 8, 9]
    assert [row["timestamp"].timestamp() for row in rows] == [1.507, 1.508, 1.509]
    assert {row["timestampType"] for row in rows} == {0}  # create time, as Java counts


def test_offsets_may_have_gaps() -> None:
    assert batch(Made(3, b"x"), Made(9, b"y"), Made(10, b"z")).column("offset").to_pylist() == [3, 9, 10]


def test_headers() -> None:
    found = batch(
        Made(1, b"x", headers=[("a", b"1"), ("a", None)]), Made(2, b"y"), Made(3, b"z", headers=[]), with_headers=True
    )
    found.validate(full=True)
    assert found.schema == SCHEMA_WITH_HEADERS
    assert found.column("headers").to_pylist() == [[{"key": "a", "value": b"1"}, {"key": "a", "value": None}], None, []]
