"""Decode one file into Arrow batches of a wanted schema, format by format, on one core.

Arrow's own thread pools stay unused: a Spark task has one core, and the others belong to other queries.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json
import pyarrow.parquet

from headgate.sources.files.config import FileFormat, FilesConfig
from headgate.sources.files.pieces import Piece, lines_of
from headgate.sources.files.separated import decode_rows, layout_of

BLOCK_BYTES = 8 << 20
"""JSON is parsed in blocks of this size; no line may be longer."""

BATCH_ROWS = 32_768
"""Rows of a batch where the format does not settle it: large enough to be cheap, small enough for the JVM."""

_ZONED = r"\d:\d\d.*(Z|[+-]\d\d(:?\d\d)?)$"
_BEYOND_MICROSECONDS = r"(\.\d{6})\d+"

Decoder = Callable[[BinaryIO, pa.Schema, FilesConfig, Piece], Iterator[pa.RecordBatch]]


def decode(stream: BinaryIO, schema: pa.Schema, config: FilesConfig, piece: Piece) -> Iterator[pa.RecordBatch]:
    """Batches of exactly `schema`: its columns in its order, absent ones null, others dropped."""
    for batch in _DECODERS[config.file_format](stream, schema, config, piece):
        yield conform(batch, schema, config.time_zone)


def conform(batch: pa.RecordBatch, schema: pa.Schema, time_zone: str) -> pa.RecordBatch:
    """The same rows with the columns and types of `schema`; a ValueError says which column cannot be had."""
    columns = [_column(batch, field, time_zone) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _column(batch: pa.RecordBatch, field: pa.Field, time_zone: str) -> pa.Array:
    index = batch.schema.get_field_index(field.name)
    values = pa.nulls(batch.num_rows, field.type) if index < 0 else batch.column(index)
    try:
        values = _converted(values, field.type, time_zone)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise ValueError(f"column {field.name!r} does not become {field.type}: {error}") from error
    if values.null_count and not field.nullable:  # the JVM would take a null for some value
        raise ValueError(f"column {field.name!r} is declared NOT NULL and is null or absent in a row")
    return values


def _converted(values: pa.Array, wanted: pa.DataType, time_zone: str) -> pa.Array:
    if values.type == wanted:
        return values
    if pa.types.is_string(values.type) and _is_instant(wanted):
        return _instants(values, wanted, time_zone)
    return pc.cast(values, options=pc.CastOptions(target_type=wanted, allow_time_truncate=True))


def _instants(texts: pa.Array, wanted: pa.DataType, time_zone: str) -> pa.Array:
    """Points in time from ISO 8601; a text without offset is in `time_zone`."""
    texts = pc.replace_substring_regex(texts, _BEYOND_MICROSECONDS, r"\1")
    zoned = pc.match_substring_regex(texts, _ZONED)
    absolute = pc.if_else(zoned, texts, None).cast(wanted)
    local = pc.if_else(zoned, None, texts).cast(pa.timestamp("us"))
    if time_zone != "UTC":
        # Where clocks are set back or forward, the earlier reading counts.
        local = pc.assume_timezone(local, time_zone, ambiguous="earliest", nonexistent="earliest")
    return pc.coalesce(absolute, local.cast(wanted))


def _is_instant(kind: pa.DataType) -> bool:
    return pa.types.is_timestamp(kind) and kind.tz is not None


def textual(schema: pa.Schema) -> pa.Schema:
    """`schema` for the parser: points in time and dates as text, since Arrow's parsers take only some spellings."""
    return pa.schema(
        pa.field(field.name, pa.string() if _is_instant(field.type) or pa.types.is_date(field.type) else field.type)
        for field in schema
    )


def _decode_json(stream: BinaryIO, schema: pa.Schema, config: FilesConfig, piece: Piece) -> Iterator[pa.RecordBatch]:
    try:
        yield from pyarrow.json.open_json(
            lines_of(stream, piece),
            read_options=pyarrow.json.ReadOptions(use_threads=False, block_size=BLOCK_BYTES),
            parse_options=pyarrow.json.ParseOptions(
                explicit_schema=textual(schema), unexpected_field_behavior="ignore"
            ),
        )
    except pa.ArrowInvalid as error:
        if "Empty JSON" not in str(error):  # nothing, or blank lines only, is no rows and no error
            raise


def _decode_csv(stream: BinaryIO, schema: pa.Schema, config: FilesConfig, piece: Piece) -> Iterator[pa.RecordBatch]:
    layout = layout_of(stream, schema.names, config)
    if layout.names:
        yield from decode_rows(lines_of(stream, layout.rows_of(piece)), layout.names, textual(schema), config)


def _spelled_as_wanted(names: Sequence[str], wanted: Sequence[str]) -> list[str]:
    """A file's column names in the schema's spelling: like Spark, upper and lower case are the same."""
    exact = set(names)
    spelling = {name.lower(): name for name in wanted if name not in exact}
    respelled = [name if name in wanted else spelling.get(name.lower(), name) for name in names]
    hits = [name for name in respelled if name in wanted]
    if not hits:
        raise ValueError(f"none of the columns {list(wanted)} is in the file, which has {list(names)}")
    if len(set(hits)) < len(hits):
        raise ValueError(f"a column is there twice: {sorted(names)}")
    return respelled


def _decode_parquet(stream: BinaryIO, schema: pa.Schema, config: FilesConfig, piece: Piece) -> Iterator[pa.RecordBatch]:
    if stream.seek(0, io.SEEK_END) == 0:
        return
    file = pyarrow.parquet.ParquetFile(stream)
    respelled = _spelled_as_wanted(file.schema_arrow.names, schema.names)
    columns = [name for name, new in zip(file.schema_arrow.names, respelled, strict=True) if new in schema.names]
    groups = [number for number in range(file.num_row_groups) if _begins_in(piece, file.metadata.row_group(number))]
    for batch in file.iter_batches(BATCH_ROWS, row_groups=groups, columns=columns, use_threads=False):
        yield batch.rename_columns(_spelled_as_wanted(batch.schema.names, schema.names))


def _begins_in(piece: Piece, group: Any) -> bool:
    column = group.column(0)
    at = column.data_page_offset if column.dictionary_page_offset is None else column.dictionary_page_offset
    return piece.first <= at and (piece.end is None or at < piece.end)


def _decode_text(stream: BinaryIO, schema: pa.Schema, config: FilesConfig, piece: Piece) -> Iterator[pa.RecordBatch]:
    with io.TextIOWrapper(lines_of(stream, piece), encoding="utf-8-sig", errors="replace") as text:
        lines = (line.removesuffix("\n") for line in text)
        while chunk := list(islice(lines, BATCH_ROWS)):
            yield pa.record_batch([pa.array(chunk, pa.string())], names=schema.names)


_DECODERS: dict[FileFormat, Decoder] = {
    "json": _decode_json,
    "csv": _decode_csv,
    "parquet": _decode_parquet,
    "text": _decode_text,
}
