"""How many rows files are taken to have, before anybody has read them."""

from __future__ import annotations

import gzip

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headgate.sources.files import rows as file_rows
from headgate.sources.files.rows import RowEstimator
from headgate.sources.files.segments import FileEntry


class TestRows:
    def test_of_text_go_by_the_bytes_of_those_measured(self, tmp_path):
        estimator = RowEstimator(fsspec.filesystem("file"), "csv", lambda: 0.0)
        files = [entry(tmp_path, i, b"x" * 9 + b"\n", rows) for i, rows in enumerate((100, 100, 7, 100_000))]
        assert estimator.rows_of(files) == [100, 100, 7, pytest.approx(100_000, rel=0.001)]

    def test_follow_longer_lines(self, tmp_path):
        estimator = RowEstimator(fsspec.filesystem("file"), "json", lambda: 0.0)
        estimator.rows_of([entry(tmp_path, i, b"x" * 9 + b"\n", 100) for i in range(4)])
        longer = [entry(tmp_path, 10 + i, b"x" * 99 + b"\n", 100) for i in range(file_rows.RESAMPLE_AFTER_FILES)]
        for _ in range(20):
            estimated = estimator.rows_of(longer)
        assert estimated[0] == pytest.approx(100, rel=0.02)

    def test_of_packed_text(self, tmp_path):
        data = gzip.compress(b"".join(b"%d,some text\n" % i for i in range(20_000)))
        path = tmp_path / "a.csv.gz"
        path.write_bytes(data)
        file = FileEntry(0, str(path), len(data), 0.0, 0.0)
        assert RowEstimator(fsspec.filesystem("file"), "csv").rows_of([file])[0] == pytest.approx(20_000, rel=0.5)

    def test_of_parquet_are_exact_and_at_least_one(self, tmp_path):
        files = [parquet(tmp_path, i, rows) for i, rows in enumerate((3, 0, 5000))]
        assert RowEstimator(fsspec.filesystem("file"), "parquet", lambda: 0.0).rows_of(files) == [3, 1, 5000]

    def test_of_a_flood_of_parquet_are_estimated(self, tmp_path):
        ticks = iter(range(1000))
        files = [parquet(tmp_path, i, 1000) for i in range(10)]
        reads: list[str] = []
        fs = fsspec.filesystem("file")
        estimator = RowEstimator(_Spy(fs, reads), "parquet", lambda: next(ticks) * file_rows.FOOTERS_BUDGET_S / 3)
        assert estimator.rows_of(files) == [pytest.approx(1000, rel=0.05)] * 10
        assert len(reads) == 3

    def test_of_unreadable_files_are_guessed(self, tmp_path):
        gone = FileEntry(0, str(tmp_path / "gone"), 1000, 0.0, 0.0)
        for file_format in ("json", "parquet"):
            assert RowEstimator(fsspec.filesystem("file"), file_format).rows_of([gone]) == [10]


class _Spy:
    def __init__(self, fs, reads):
        self.fs, self.reads = fs, reads

    def open(self, path, *args):
        self.reads.append(path)
        return self.fs.open(path, *args)


def entry(folder, number, line, rows):
    path = folder / f"{number}"
    path.write_bytes(line * rows)
    return FileEntry(number, str(path), path.stat().st_size, 0.0, 0.0)


def parquet(folder, number, rows):
    path = folder / f"{number}.parquet"
    pq.write_table(pa.table({"a": list(range(rows))}), path)
    return FileEntry(number, str(path), path.stat().st_size, 0.0, 0.0)
