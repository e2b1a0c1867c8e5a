"""Large files in pieces, and bad records set aside."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headgate.sources.files.config import FilesConfig
from headgate.sources.files.pieces import LEAST_BYTES, Piece, cut
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
        ("csv", "name,id\n", "n{0},{0}\n"),
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
