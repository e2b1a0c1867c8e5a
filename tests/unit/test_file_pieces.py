"""Large files in pieces, and bad records set aside."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fsspec.exceptions import FSTimeoutError

from headgate.sources.files.config import FilesConfig
from headgate.sources.files.pieces import LEAST_BYTES, Piece, cut, spread
from headgate.sources.files.reader import FileRangeReader, UnreadableFile
from headgate.sources.files.segments import FileEntry

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string())])


def reader(folder: Path, file_format: str, schema: pa.Schema = SCHEMA, **options: str) -> FileRangeReader:
    return FileRangeReader(FilesConfig.parse({"path": str(folder), "fileFormat": file_format, **options}), schema)


def read(made: FileRangeReader, *pieces: list[Any]) -> list[dict[str, Any]]:
    return [row for batch in made({"pieces": list(pieces)}) for row in batch.to_pylist()]


def thirds(path: Path) -> list[list[Any]]:
    size = path.stat().st_size
    return [[str(path), 0, size // 3], [str(path), size // 3, 2 * size // 3], [str(path), 2 * size // 3, None]]


@pytest.mark.parametrize(
    ("file_format", "header", "line"),
    [
        ("json", "", '{{"id": {0}, "name": "n{0}"}}\n'),
        ("csv", "", "{0},n{0}\n"),
        ("csv", "id,name\n", "{0},n{0}\n"),
        ("csv", "\n\nid,name\n", "{0},n{0}\n"),
    ],
)
def test_pieces_together_are_the_file(tmp_path: Path, file_format: str, header: str, line: str) -> None:
    path = tmp_path / "a"
    path.write_text(header + "".join(line.format(number) for number in range(5_000)))
    made = reader(tmp_path, file_format, header=str(bool(header)).lower())
    parts = [read(made, piece) for piece in thirds(path)]
    assert all(len(part) > 1_000 for part in parts)
    assert [row for part in parts for row in part] == [{"id": n, "name": f"n{n}"} for n in range(5_000)]


def test_text_in_pieces(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("".join(f"line {number}\n" for number in range(1_000)))
    made = reader(tmp_path, "text", pa.schema([("value", pa.string())]))
    assert [row["value"] for piece in thirds(path) for row in read(made, piece)] == [f"line {n}" for n in range(1_000)]


def test_a_piece_in_the_middle_of_a_long_line_is_empty(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text('{"id": 1, "name": "' + "x" * 9_000 + '"}\n{"id": 2, "name": "y"}\n')
    made = reader(tmp_path, "json")
    assert [[row["id"] for row in read(made, piece)] for piece in thirds(path)] == [[1], [], [2]]
    csv = reader(tmp_path, "csv")
    path.write_text("1," + "x" * 9_000 + "\n2,y\n")
    assert [[row["id"] for row in read(csv, piece)] for piece in thirds(path)] == [[1], [], [2]]


def test_parquet_is_cut_between_row_groups(tmp_path: Path) -> None:
    path = tmp_path / "a"
    table = pa.table({"id": list(range(3_000)), "name": [f"n{n}" for n in range(3_000)]}, schema=SCHEMA)
    pq.write_table(table, path, row_group_size=500)
    parts = [[row["id"] for row in read(reader(tmp_path, "parquet"), piece)] for piece in thirds(path)]
    assert [id_ for part in parts for id_ in part] == list(range(3_000))
    assert all(len(part) % 500 == 0 for part in parts) and 0 < len(parts[0]) < 3_000


def test_small_and_packed_files_stay_whole() -> None:
    def pieces(path: str, size: int, file_format: Any = "json") -> int:
        return len(cut([FileEntry(0, path, size, 0.0, 0.0)], 4, file_format))

    assert pieces("a.json", LEAST_BYTES) == 1
    assert pieces("a.json", 4 * LEAST_BYTES) == 4
    assert pieces("a.json.gz", 4 * LEAST_BYTES) == 1
    assert pieces("a.gz.parquet", 4 * LEAST_BYTES, "parquet") == 4


def test_the_broken_line_of_a_piece_is_counted_from_the_beginning_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a"
    lines = [json.dumps({"id": number, "name": "n"}) for number in range(2_000)]
    lines[1_500] = "{broken"
    path.write_text("\n".join(lines) + "\n")
    made = reader(tmp_path, "json")
    assert len(read(made, thirds(path)[0])) > 600
    with pytest.raises(UnreadableFile) as caught:
        read(made, thirds(path)[2])
    assert caught.value.line == 1_501


def kept(folder: Path) -> list[dict[str, str]]:
    return [json.loads(line) for path in sorted(folder.glob("*.jsonl")) for line in path.read_text().splitlines()]


@pytest.mark.parametrize("packed", [False, True])
def test_bad_lines_are_set_aside(tmp_path: Path, packed: bool) -> None:
    lines = [json.dumps({"id": number, "name": "n"}) for number in range(3_000)]
    lines[7], lines[2_000] = "{broken", '{"id": "not a number", "name": "m"}'
    data = ("\n".join(lines) + "\n").encode()
    path = tmp_path / ("a.json.gz" if packed else "a.json")
    path.write_bytes(gzip.compress(data) if packed else data)
    made = reader(tmp_path, "json", badRecordsPath=str(tmp_path / "bad"))
    for _ in range(2):  # a task that is run again writes the same
        assert [row["id"] for row in read(made, [str(path)])] == [n for n in range(3_000) if n not in (7, 2_000)]
        assert [bad["record"] for bad in kept(tmp_path / "bad")] == [lines[7], lines[2_000]]
    assert all(bad["path"] == str(path) and bad["reason"] for bad in kept(tmp_path / "bad"))


def test_bad_rows_of_csv_are_set_aside(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("id,name\n1,a\nno number,b\n3\n4,d\n")
    made = reader(tmp_path, "csv", header="true", badRecordsPath=str(tmp_path / "bad"))
    assert [row["id"] for row in read(made, [str(path)])] == [1, 4]
    assert [bad["record"] for bad in kept(tmp_path / "bad")] == ["no number,b", "3"]


@pytest.mark.parametrize("first", ["\n", "\r\n\r\n", "  \n", "\n\nid,name\n"])
def test_blank_lines_at_the_beginning_are_no_rows_and_no_bad_ones(tmp_path: Path, first: str) -> None:
    (tmp_path / "a.csv").write_bytes(f"{first}1,a\nx,b\n\n3,c\n".encode())
    bad = tmp_path / "bad"
    made = reader(tmp_path, "csv", header=str("id" in first).lower(), badRecordsPath=str(bad))
    assert [row["id"] for row in read(made, [str(tmp_path / "a.csv")])] == [1, 3]
    assert [each["record"] for each in kept(bad)] == ["x,b"]


def test_a_bad_record_is_kept_as_it_was_written(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(rb'1,"a\"b"' b"\n" rb'x,"a\"b"' b"\n" rb'3,"open\"' b"\n" rb'4,"c"' b"\n")
    made = reader(tmp_path, "csv", badRecordsPath=str(tmp_path / "bad"))
    rows = read(made, [str(tmp_path / "a.csv")])
    assert rows == [{"id": 1, "name": 'a"b'}, {"id": 4, "name": "c"}]
    assert [each["record"] for each in kept(tmp_path / "bad")] == [rb'x,"a\"b"'.decode(), rb'3,"open\"'.decode()]


class Flaky(io.RawIOBase):
    """A remote file whose storage fails after some reads."""

    def __init__(self, data: bytes, error: Exception, reads: int) -> None:
        self.inner, self.error, self.reads = io.BytesIO(data), error, reads

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, *where: int) -> int:
        return self.inner.seek(*where)

    def tell(self) -> int:
        return self.inner.tell()

    def read(self, size: int = -1) -> bytes:
        self.reads -= 1
        if self.reads < 0:
            raise self.error
        return self.inner.read(size)

    def readinto(self, target: Any) -> int:
        data = self.read(len(target))
        target[: len(data)] = data
        return len(data)


class StorageTrouble(Exception):
    """Drivers have errors of their own, such as botocore's, which are no OSError."""


def a_parquet_file() -> bytes:
    file = io.BytesIO()
    rows = {"id": list(range(20_000)), "name": [f"n{n}" for n in range(20_000)]}
    pq.write_table(pa.table(rows, schema=SCHEMA), file, row_group_size=1_000)
    return file.getvalue()


FAULTS = [FSTimeoutError(), StorageTrouble("reset"), ConnectionResetError(104, "reset"), MemoryError("full")]


@pytest.mark.parametrize("error", FAULTS, ids=repr)
@pytest.mark.parametrize("file_format", ["parquet", "text", "json", "csv"])
def test_a_storage_that_fails_makes_no_bad_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file_format: str, error: Exception
) -> None:
    data = a_parquet_file() if file_format == "parquet" else b"1,2\n" * 100_000
    schema = pa.schema([("value", pa.string())]) if file_format == "text" else SCHEMA
    made = reader(tmp_path, file_format, schema, badRecordsPath=str(tmp_path / "bad"))
    flaky = Flaky(data, error, reads=1 if file_format == "parquet" else 6)  # its footer, then all
    stream = flaky if file_format == "parquet" else io.BufferedReader(flaky, 4096)
    monkeypatch.setattr(FileRangeReader, "_open", lambda *_: stream)
    with pytest.raises(UnreadableFile, match=r"storage can be reached.*start the query again"):
        read(made, [str(tmp_path / "a")])
    assert not (tmp_path / "bad").exists()


@pytest.mark.parametrize(("ending", "pack"), [("gz", gzip.compress), ("bz2", bz2.compress), ("xz", lzma.compress)])
@pytest.mark.parametrize(
    "spoil", [lambda data: data[:-20], lambda data: data[:-40] + bytes(40), lambda data: b"no" * 50]
)
def test_a_torn_archive_is_set_aside(tmp_path: Path, ending: str, pack: Any, spoil: Any) -> None:
    path = tmp_path / f"a.{ending}"
    path.write_bytes(spoil(pack(b"".join(b"%d\n" % number for number in range(200_000)))))
    made = reader(tmp_path, "text", pa.schema([("value", pa.string())]), badRecordsPath=str(tmp_path / "bad"))
    rows = [row["value"] for row in read(made, [str(path)])]
    assert rows == [str(number) for number in range(len(rows))]
    assert [bad["path"] for bad in kept(tmp_path / "bad")] == [str(path)]


def test_a_torn_parquet_file_is_set_aside(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(b"PAR1 not really")
    made = reader(tmp_path, "parquet", badRecordsPath=str(tmp_path / "bad"))
    assert read(made, [str(path)]) == []
    assert [bad["path"] for bad in kept(tmp_path / "bad")] == [str(path)]


def test_good_files_leave_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "a").write_text('{"id": 1, "name": "x"}\n')
    assert read(reader(tmp_path, "json", badRecordsPath=str(tmp_path / "bad")), [str(tmp_path / "a")])
    assert not (tmp_path / "bad").exists()


def test_a_piece_is_known_by_its_file_and_bytes() -> None:
    titles = [Piece("/data/in/a.json").title, Piece("/data/a.json", 0, 9).title, Piece("a.json", 9).title]
    assert titles == ["a.json", "a.json[0:9]", "a.json[9:]"]


class TestSpread:
    def test_longest_first_to_the_least_loaded(self) -> None:
        mib = 1 << 20
        shares = spread([(Piece(f"{i}"), size * mib) for i, size in enumerate((3, 5, 4, 2))], 2)
        assert [[piece.path for piece in share] for share in shares] == [["1", "3"], ["0", "2"]]

    def test_opening_many_small_files_counts_too(self) -> None:
        sizes = [1 << 20] + [10] * 100
        shares = spread([(Piece(f"{i}"), size) for i, size in enumerate(sizes)], 2)
        assert [len(share) for share in shares] == [35, 66]

    def test_no_share_is_empty(self) -> None:
        assert len(spread([(Piece("a"), 1)], 8)) == 1
        assert spread([], 8) == []
