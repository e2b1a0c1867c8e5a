"""Values between separators (CSV): where a file's columns begin, and lines of them in the way that Arrow reads them."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator, Sequence
from typing import BinaryIO, NamedTuple

import pyarrow as pa
import pyarrow.csv

from headgate.sources.files.config import FilesConfig
from headgate.sources.files.pieces import Piece

BLOCK_BYTES = 8 << 20
"""Lines are parsed in blocks of this size."""

_LINE_BYTES = 64 << 10
"""Room for the end of a block's last line; a longer one costs a copy."""

_BOM = b"\xef\xbb\xbf"


class Layout(NamedTuple):
    """The columns of a file, in its order, and the byte at which its rows begin; no names is no rows."""

    names: list[str]
    rows_from: int

    def rows_of(self, piece: Piece) -> Piece:
        """The piece without blank lines at the beginning of the file, and without its header."""
        return piece._replace(first=max(piece.first, self.rows_from))


def layout_of(stream: BinaryIO, wanted: Sequence[str], config: FilesConfig) -> Layout:
    """Columns go by position, as in Spark: a header is skipped, and only compared if ``enforceSchema`` is false."""
    first, end = _first_line(stream)
    cells = _cells(first, config)
    stream.seek(0)
    if config.header and cells:
        _check_header(cells, wanted, config)
    names = [wanted[i] if i < len(wanted) else f"{i} beyond the schema" for i in range(len(cells))]
    return Layout(names, end if config.header else end - len(first))


def _first_line(stream: BinaryIO) -> tuple[bytes, int]:
    """The first line that is not blank, and where it ends; nothing at the end of the file."""
    end = 0
    while line := stream.readline():
        end += len(line)
        if line.removeprefix(_BOM).strip():
            return line, end
    return b"", end


def _cells(line: bytes, config: FilesConfig) -> list[str]:
    text = unescaper(config)(line).decode("utf-8-sig", errors="replace")
    if not config.quote:
        return next(csv.reader([text], delimiter=config.sep, quoting=csv.QUOTE_NONE), [])
    return next(csv.reader([text], delimiter=config.sep, quotechar=config.quote), [])


def _check_header(header: Sequence[str], wanted: Sequence[str], config: FilesConfig) -> None:
    found = f"the header has {', '.join(map(repr, header))}, the schema {', '.join(map(repr, wanted))}"
    if len(header) != len(wanted):
        raise ValueError(f"{found}: say all columns of the file in the schema, in the file's order")
    if not config.enforce_schema and [name.lower() for name in header] != [name.lower() for name in wanted]:
        raise ValueError(f"{found}: with enforceSchema=false the names must be the same, in the same order")


def decode_rows(lines: BinaryIO, names: list[str], types: pa.Schema, config: FilesConfig) -> Iterator[pa.RecordBatch]:
    """Lines of columns whose names are known; those that are not in `types` are left out, absent ones null."""
    try:
        yield from pyarrow.csv.open_csv(
            _Unescaped(lines, unescaper(config)),
            read_options=pyarrow.csv.ReadOptions(use_threads=False, block_size=BLOCK_BYTES, column_names=names),
            parse_options=pyarrow.csv.ParseOptions(delimiter=config.sep, quote_char=config.quote or False),
            convert_options=pyarrow.csv.ConvertOptions(
                column_types=types,
                include_columns=types.names,
                include_missing_columns=True,
                # As in Spark: nothing between separators is null, and what stands for null does so in quotes too.
                null_values=list({"", config.null_value}),
                strings_can_be_null=True,
                quoted_strings_can_be_null=True,
            ),
        )
    except pa.ArrowInvalid as error:
        if "Empty CSV" not in str(error):  # a header alone, or blank lines, is no rows and no error
            raise


def unescaper(config: FilesConfig) -> Callable[[bytes], bytes]:
    """Doubles quotes that are escaped inside of quoted values, and takes the escape character from before itself.

    Arrow's own escape character is not Spark's: it counts outside of quotes too, and vanishes before any character.
    """
    quote, escape = config.quote.encode(), config.escape.encode()
    if not quote or not escape or quote == escape:
        return lambda data: data
    q, e, sep = (re.escape(each) for each in (quote, escape, config.sep.encode()))
    begin = rb"((?:^(?:%s)?|%s)%s)" % (_BOM, sep, q)
    value = re.compile(begin + rb"((?:[^%s%s]+|%s.|%s%s)*)(%s?)" % (q, e, e, q, q, q), re.DOTALL)
    escaped = re.compile(e + b"([%s%s])" % (q, e))

    def unescape_value(match: re.Match[bytes]) -> bytes:
        if not match[3]:
            raise ValueError(f"a quote is not closed in this line: {match.string.decode(errors='replace')[:200]}")
        return match[1] + escaped.sub(lambda each: quote * 2 if each[1] == quote else escape, match[2]) + match[3]

    def unescape(data: bytes) -> bytes:
        if escape not in data:
            return data
        lines = data.split(b"\n")
        return b"\n".join(value.sub(unescape_value, line) if escape in line else line for line in lines)

    return unescape


class _Unescaped(io.RawIOBase):
    """Whole lines, a block at a time, each block unescaped: most have nothing to do for it, and are handed on."""

    def __init__(self, lines: BinaryIO, unescape: Callable[[bytes], bytes]) -> None:
        self._lines = lines
        self._unescape = unescape
        self._left = b""

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        data = self._left or self._next(size)
        if size < 0:
            return data + b"".join(iter(lambda: self._next(BLOCK_BYTES), b""))
        self._left = data[size:]
        return data if not self._left else data[:size]

    def _next(self, size: int) -> bytes:
        data = self._lines.read(max(1, size - _LINE_BYTES))
        return self._unescape(data if not data or data.endswith(b"\n") else data + self._lines.readline())
