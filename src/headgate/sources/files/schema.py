"""The schema of a files source: given by the user, read from a Parquet footer, or fixed for text."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from headgate.errors import BadParameter
from headgate.sources.files.config import FilesConfig

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

_GIVE_SCHEMA = 'say it: .schema("id long, at timestamp, …")'


def default_schema(config: FilesConfig) -> StructType:
    """The schema when the user gave none; all columns may be null, as in Spark's own file source."""
    from pyspark.sql.types import StringType, StructType

    if config.file_format == "text":
        return StructType().add("value", StringType())
    if config.file_format == "parquet":
        return _footer_schema(config)
    raise BadParameter("schema", None, f"{config.file_format} files do not say their schema", _GIVE_SCHEMA)


def arrow_schema(config: FilesConfig, schema: StructType) -> pa.Schema:
    """`schema` as Spark's Python data sources want it in Arrow, if files of this format can have it.

    Spark compares the first batch of a task with exactly this: timestamps in microseconds, those with a zone in UTC.
    """
    from pyspark.sql.pandas.types import to_arrow_schema

    wanted = to_arrow_schema(schema, timezone="UTC")
    if config.file_format == "text" and [str(field.type) for field in wanted] != ["string"]:
        raise BadParameter("schema", schema.simpleString(), "a line of text is one string", "leave the schema out")
    for field in wanted:
        if problem := _problem(config, field.type):
            raise BadParameter("schema", f"{field.name} {field.type}", problem, "read it as string and convert it")
    return wanted


def _footer_schema(config: FilesConfig) -> StructType:
    import pyarrow.parquet as pq
    from fsspec.core import url_to_fs
    from pyspark.errors import PySparkTypeError
    from pyspark.sql.pandas.types import from_arrow_schema

    path = _first_file(config)
    try:
        with url_to_fs(config.path)[0].open(path, "rb") as stream:
            found = from_arrow_schema(pq.read_schema(stream))
    except (OSError, ValueError, PySparkTypeError) as error:
        raise BadParameter("schema", None, f"it cannot be read from {path} ({error})", _GIVE_SCHEMA) from error
    return found.toNullable()


def _first_file(config: FilesConfig) -> str:
    from headgate.sources.files.listing import listing_of

    files = listing_of(config.path, config.path_glob_filter).new_files(frozenset(), time.time())
    if not files:
        raise BadParameter("schema", None, f"there is no file in {config.path} to read it from", _GIVE_SCHEMA)
    return min(files, key=lambda file: (file.modified_s, file.path)).path


def _problem(config: FilesConfig, kind: pa.DataType) -> str | None:
    """Why a text format cannot hold a column of this type, or None."""
    import pyarrow.types as types

    inner = list(_within(kind))
    if config.file_format == "csv" and inner:
        return "CSV has no nested columns"
    if config.file_format == "json" and any(map(types.is_map, (kind, *inner))):
        return "JSON objects are read as structs, not as maps"
    if config.file_format == "json" and any(map(types.is_date, inner)):
        return "dates inside of structs or arrays are not recognised"
    return None


def _within(kind: pa.DataType) -> Iterator[pa.DataType]:
    for i in range(kind.num_fields):
        inner = kind.field(i).type
        yield inner
        yield from _within(inner)
