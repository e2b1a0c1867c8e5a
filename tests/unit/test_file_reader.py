from __future__ import annotations

import bz2
import gzip
import pickle
import subprocess
import sys
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from headgate.errors import BadParameter
from headgate.sources.files.config import FilesConfig
from headgate.sources.files.reader import FileRangeReader, UnreadableFile
from headgate.sources.files.schema import arrow_schema, default_schema

INSTANT = pa.timestamp("us", tz="UTC")
SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string()), ("score", pa.float32())])


def config(folder, file_format, **options):
    return FilesConfig.parse({"path": str(folder), "fileFormat": file_format, **options})


@pytest.fixture
def read(tmp_path):
    """Write bytes to a file and read its rows with a schema."""

    def run(file_format, data, schema=SCHEMA, name="a", **options):
        (tmp_path / name).write_bytes(data)
        reader = pickle.loads(pickle.dumps(FileRangeReader(config(tmp_path, file_format, **options), schema)))
        batches = list(reader({"pieces": [[str(tmp_path / name)]]}))
        assert all(batch.schema.equals(schema) for batch in batches)  # as Spark demands, nullability included
        return [row for batch in batches for row in batch.to_pylist()]

    return run


class TestJson:
    def test_takes_the_wanted_columns_in_the_wanted_order(self, read):
        data = b'{"extra": {"x": [1]}, "name": "n", "id": 1}\n\n{"score": 2, "id": null}\n'
        assert read("json", data) == [
            {"id": 1, "name": "n", "score": None},
            {"id": None, "name": None, "score": 2.0},
        ]

    def test_takes_times_dates_and_decimals(self, read):
        schema = pa.schema([("at", INSTANT), ("day", pa.date32()), ("sum", pa.decimal128(6, 2))])
        data = b"""{"at": "2024-05-01T12:00:00Z", "day": "2024-05-01", "sum": 1.5}
{"at": "2024-05-01T12:00:00.123456789+02:00", "sum": "2.25"}
{"at": "2024-05-01 12:00:00"}
{"at": null}
"""
        rows = read("json", data, schema, timeZone="Europe/Berlin")
        assert [row["at"] for row in rows] == [
            datetime(2024, 5, 1, 12, tzinfo=UTC),
            datetime(2024, 5, 1, 10, 0, 0, 123456, tzinfo=UTC),
            datetime(2024, 5, 1, 10, tzinfo=UTC),
            None,
        ]
        assert (rows[0]["day"], rows[0]["sum"], rows[1]["sum"]) == (date(2024, 5, 1), Decimal("1.50"), Decimal("2.25"))
        assert read("json", b'{"at": "2024-05-01 12:00:00"}', schema)[0]["at"] == datetime(2024, 5, 1, 12, tzinfo=UTC)

    def test_takes_nested_columns(self, read):
        schema = pa.schema([("a", pa.list_(pa.field("element", pa.struct([("x", pa.int32()), ("y", pa.string())]))))])
        assert read("json", b'{"a": [{"x": 1, "z": 2}, {}]}', schema) == [
            {"a": [{"x": 1, "y": None}, {"x": None, "y": None}]}
        ]

    @pytest.mark.parametrize("data", [b"", b"\n\n"])
    def test_nothing_is_no_rows(self, read, data):
        assert read("json", data) == []

    @pytest.mark.parametrize("bad", [b'{"id": 1', b'{"id": "one"}', b'{"id": 1.5}', b'[{"id": 1}]', b"rubbish"])
    @pytest.mark.parametrize("line", [1, 2, 700, 1000])
    def test_names_the_broken_line(self, read, bad, line, tmp_path):
        lines = [b'{"id": 1}'] * 1000
        lines[line - 1] = bad
        with pytest.raises(UnreadableFile, match=rf"{tmp_path}/a, line {line}: .*empty file in its place"):
            read("json", b"\n".join(lines))

    def test_names_the_line_whose_value_does_not_convert(self, read):
        schema = pa.schema([("at", INSTANT), pa.field("id", pa.int64(), nullable=False)])
        with pytest.raises(UnreadableFile, match=r"line 2: column 'at' does not become timestamp.*yesterday"):
            read("json", b'{"id": 1}\n{"at": "yesterday", "id": 2}\n', schema)
        with pytest.raises(UnreadableFile, match=r"line 2: column 'id' is declared NOT NULL"):
            read("json", b'{"id": 1}\n{"at": null}\n', schema)


class TestCsv:
    def test_without_header_goes_by_position(self, read):
        assert read("csv", b'1,"a,b",0.5\n,"",\n') == [
            {"id": 1, "name": "a,b", "score": 0.5},
            {"id": None, "name": None, "score": None},  # in Spark a quoted nothing is null too
        ]

    @pytest.mark.parametrize(("data", "name"), [(b"1\n", None), (b"1,x\n", "x"), (b"1,x,2,more\n", "x")])
    def test_without_header_may_have_fewer_or_more_columns(self, read, data, name):
        row = read("csv", data)[0]
        assert (row["id"], row["name"]) == (1, name)

    @pytest.mark.parametrize("first", [b"", b"\n", b"\r\n\r\n", b" \t\n", b"\xef\xbb\xbf", b"\xef\xbb\xbf\n"])
    @pytest.mark.parametrize("header", [b"", b"id,name,score\r\n"])
    def test_blank_lines_at_the_beginning_are_skipped(self, read, first, header):
        rows = read("csv", first + header + b"1,a,1\n\n2,b,2\n", header=str(bool(header)).lower())
        assert [(row["id"], row["name"]) for row in rows] == [(1, "a"), (2, "b")]

    def test_with_header_goes_by_position_as_in_spark(self, read):
        data = b"\xef\xbb\xbfID_NO;score;Name\n1;n;0.5\n"
        assert read("csv", data, header="true", sep=";") == [{"id": 1, "name": "n", "score": 0.5}]

    def test_names_may_be_made_to_count(self, read):
        options = {"header": "true", "enforceSchema": "false"}
        assert read("csv", b"ID,Name,score\n1,n,2\n", **options) == [{"id": 1, "name": "n", "score": 2.0}]
        for header in (b"id,score,name", b"ID_NO,name,score", b" id,name,score"):
            with pytest.raises(UnreadableFile, match=r"the header has .*, the schema 'id', .*enforceSchema=false"):
                read("csv", header + b"\n1,2,3\n", **options)

    @pytest.mark.parametrize("header", [b"id,name", b"id,name,score,more", b"x"])
    @pytest.mark.parametrize("enforce", ["true", "false"])
    def test_a_header_with_other_columns_than_the_schema_is_refused(self, read, header, enforce):
        with pytest.raises(UnreadableFile, match="say all columns of the file"):
            read("csv", header + b"\n1,2\n", header="true", enforceSchema=enforce)

    @pytest.mark.parametrize(
        ("written", "value"),
        [
            (rb'"a\"b"', 'a"b'),
            (rb'"a""b"', 'a"b'),
            (rb'"x,""y"",z"', 'x,"y",z'),
            (rb'"\"a\""', '"a"'),
            (rb'"a\\"', "a\\"),
            (rb'"a\\,b"', "a\\,b"),
            (rb'"a\\\"b"', 'a\\"b'),
            (rb'"a\\\\b"', "a\\\\b"),
            (rb'"a\b"', "a\\b"),
            (rb"C:\temp", "C:\\temp"),
            (rb"a\\b", "a\\\\b"),
            (rb"a\"b", 'a\\"b'),
        ],
    )
    def test_escapes_are_sparks(self, read, written, value):
        for before in (b"", b"\xef\xbb\xbf"):
            data = before + written + b",1\n" + written + b",2\n"
            rows = read("csv", data, pa.schema([("name", pa.string()), ("id", pa.int64())]))
            assert rows == [{"name": value, "id": 1}, {"name": value, "id": 2}]

    def test_escapes_in_many_lines(self, read):
        lines = [rb'%d,"say \"%d\", or C:\\",0' % (number, number) for number in range(60_000)]
        rows = read("csv", b"\n".join(lines))
        assert [row["name"] for row in rows] == [f'say "{number}", or C:\\' for number in range(60_000)]

    def test_a_quote_that_an_escape_leaves_open_is_an_error(self, read):
        with pytest.raises(UnreadableFile, match=r"a quote is not closed in this line: 1,"):
            read("csv", rb'1,"C:\dir\",0' + b"\n")

    def test_other_quotes_and_escapes(self, read):
        assert read("csv", rb"1,'a^'b,c',0", quote="'", escape="^")[0]["name"] == "a'b,c"
        assert read("csv", rb'1,"a\b""c",0', escape='"')[0]["name"] == 'a\\b"c'
        assert read("csv", rb'1,"a\",0', escape="")[0]["name"] == "a\\"
        assert read("csv", rb'1,"a\",0', quote="")[0]["name"] == '"a\\"'

    def test_another_value_for_null(self, read):
        rows = read("csv", b'NA,NA,NA\n1,"NA",\n2,,1\n', nullValue="NA")
        assert [tuple(row.values()) for row in rows] == [(None, None, None), (1, None, None), (2, None, 1.0)]
        assert read("csv", b"1,NA,1\n")[0]["name"] == "NA"

    def test_takes_times_and_dates(self, read):
        schema = pa.schema([("at", INSTANT), ("local", pa.timestamp("us")), ("day", pa.date32())])
        row = read("csv", b"2024-05-01T12:00:00+01:00,2024-05-01 12:00:00,2024-05-01\n", schema)[0]
        assert row["at"] == datetime(2024, 5, 1, 11, tzinfo=UTC)
        assert (row["local"], row["day"]) == (datetime(2024, 5, 1, 12), date(2024, 5, 1))

    @pytest.mark.parametrize("data", [b"", b"\n\n", b"id,name,score", b"id,name,score\n", b"\nid,name,score\n\n\n"])
    def test_nothing_is_no_rows(self, read, data):
        assert read("csv", data, header="true") == []

    @pytest.mark.parametrize("bad", [b"one,x,1", b"1,x", b"1,x,1,1"])
    def test_names_the_broken_line(self, read, bad):
        with pytest.raises(UnreadableFile, match="line 3: "):
            read("csv", b"id,name,score\n1,x,1\n" + bad + b"\n1,x,1\n", header="true")

    @pytest.mark.parametrize("bad", [b"one,x,1", b"1,x"])
    def test_counts_blank_lines(self, read, bad):
        for header in (b"id,name,score\n", b"1,x,1\n"):
            with pytest.raises(UnreadableFile, match="line 7: "):
                data = b"\n\r\n" + header + b"1,x,1\n\n\n" + bad + b"\n"
                read("csv", data, header=str(header.startswith(b"id")).lower())


class TestParquet:
    def write(self, tmp_path, table):
        pq.write_table(table, tmp_path / "source")
        return (tmp_path / "source").read_bytes()

    def test_takes_wanted_columns_and_casts_them(self, read, tmp_path):
        table = pa.table(
            {"extra": [1, 2], "NAME": pa.array(["a", "b"]).dictionary_encode(), "id": pa.array([1, 2], pa.int8())}
        )
        assert read("parquet", self.write(tmp_path, table)) == [
            {"id": 1, "name": "a", "score": None},
            {"id": 2, "name": "b", "score": None},
        ]

    def test_cuts_times_to_microseconds(self, read, tmp_path):
        table = pa.table({"at": pa.array([1_000_000_001_500], pa.timestamp("ns", tz="UTC"))})
        row = read("parquet", self.write(tmp_path, table), pa.schema([("at", INSTANT)]))[0]
        assert row["at"] == datetime(1970, 1, 1, 0, 16, 40, 1, tzinfo=UTC)

    def test_an_empty_file_is_no_rows(self, read):
        assert read("parquet", b"") == []

    @pytest.mark.parametrize(("names", "problem"), [(["x", "y"], "none of the columns"), (["ID", "Id"], "twice")])
    def test_refuses_columns_that_cannot_be_meant(self, read, tmp_path, names, problem):
        table = pa.table([[1], [2]], names=names)
        with pytest.raises(UnreadableFile, match=problem):
            read("parquet", self.write(tmp_path, table))

    def test_refuses_what_does_not_fit(self, read, tmp_path):
        table = pa.table({"id": ["one"]})
        with pytest.raises(UnreadableFile, match="column 'id' does not become int64"):
            read("parquet", self.write(tmp_path, table))

    def test_refuses_a_torn_file(self, read, tmp_path):
        with pytest.raises(UnreadableFile, match=r"mend it, or put an empty file"):
            read("parquet", self.write(tmp_path, pa.table({"id": [1]}))[:-9])


class TestText:
    SCHEMA = pa.schema([("value", pa.string())])

    def test_is_one_row_per_line(self, read):
        rows = read("text", "eins\r\n\nzwei é\nlast".encode() + b"\xff", self.SCHEMA)
        assert [row["value"] for row in rows] == ["eins", "", "zwei é", "last\N{REPLACEMENT CHARACTER}"]

    def test_comes_in_several_batches(self, read):
        assert len(read("text", b"x\n" * 100_000, self.SCHEMA)) == 100_000

    @pytest.mark.parametrize(("pack", "ending"), [(gzip.compress, "gz"), (bz2.compress, "bz2")])
    def test_is_unpacked_by_its_ending(self, read, pack, ending):
        assert read("text", pack(b"a\nb\n"), self.SCHEMA, name=f"a.txt.{ending}") == [{"value": "a"}, {"value": "b"}]

    def test_a_torn_archive_is_an_error(self, read):
        with pytest.raises(UnreadableFile, match="mend it"):
            read("text", gzip.compress(b"a\nb\n" * 1000)[:-10], self.SCHEMA, name="a.gz")


class TestReader:
    def test_a_vanished_file_is_an_error_that_survives_the_way_to_the_driver(self, tmp_path):
        reader = FileRangeReader(config(tmp_path, "json"), SCHEMA)
        with pytest.raises(
            UnreadableFile, match=r"gone: this file vanished.*put it back, or put an empty file"
        ) as caught:
            list(reader({"pieces": [[str(tmp_path / "gone")]]}))
        assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)

    def test_reads_files_in_order(self, tmp_path):
        for name in "ba":
            (tmp_path / name).write_text(name)
        reader = FileRangeReader(config(tmp_path, "text"), TestText.SCHEMA)
        share = {"pieces": [[str(tmp_path / name)] for name in "ba"]}
        assert [batch.to_pylist()[0]["value"] for batch in reader(share)] == ["b", "a"]

    def test_is_light(self, tmp_path):
        assert len(pickle.dumps(FileRangeReader(config(tmp_path, "json"), SCHEMA))) < 1000
        program = (
            "import headgate.sources.files.reader, sys; print(*{'pyarrow', 'fsspec', 'pyspark'} & set(sys.modules))"
        )
        env = {"PYTHONPATH": ":".join(sys.path)}
        assert subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True).stdout == "\n"


class TestSchema:
    def test_is_what_spark_compares_with(self, tmp_path):
        spark = StructType.fromJson(_struct(id="long", at="timestamp", local="timestamp_ntz"))
        schema = arrow_schema(config(tmp_path, "json"), spark)
        assert schema.equals(to_arrow_schema(spark, timezone="UTC"))
        assert [str(field.type) for field in schema] == ["int64", "timestamp[us, tz=UTC]", "timestamp[us]"]

    def test_of_text_is_fixed(self, tmp_path):
        assert default_schema(config(tmp_path, "text")).simpleString() == "struct<value:string>"
        with pytest.raises(BadParameter, match="leave the schema out"):
            arrow_schema(config(tmp_path, "text"), StructType.fromJson(_struct(id="long")))

    def test_of_parquet_comes_from_the_oldest_file(self, tmp_path):
        wanted = pa.schema([pa.field("a", pa.int32(), nullable=False), ("t", pa.timestamp("ns", tz="UTC"))])
        pq.write_table(wanted.empty_table(), tmp_path / "a")
        schema = default_schema(config(tmp_path, "parquet"))
        assert schema.simpleString() == "struct<a:int,t:timestamp>"
        assert schema["a"].nullable

    @pytest.mark.parametrize(
        ("file_format", "problem"), [("json", "do not say"), ("csv", "do not say"), ("parquet", "no file")]
    )
    def test_must_be_given_otherwise(self, tmp_path, file_format, problem):
        with pytest.raises(BadParameter, match=rf"{problem}.*\.schema\("):
            default_schema(config(tmp_path, file_format))

    def test_of_a_broken_parquet_file_must_be_given(self, tmp_path):
        (tmp_path / "a").write_text("rubbish")
        with pytest.raises(BadParameter, match="cannot be read from"):
            default_schema(config(tmp_path, "parquet"))

    @pytest.mark.parametrize(
        ("file_format", "kind", "problem"),
        [
            ("csv", {"type": "array", "elementType": "long", "containsNull": True}, "no nested"),
            ("json", {"type": "map", "keyType": "string", "valueType": "long", "valueContainsNull": True}, "maps"),
            ("json", {"type": "array", "elementType": "date", "containsNull": True}, "dates inside"),
        ],
    )
    def test_is_refused_where_the_format_cannot_hold_it(self, tmp_path, file_format, kind, problem):
        with pytest.raises(BadParameter, match=problem):
            arrow_schema(config(tmp_path, file_format), StructType.fromJson(_struct(x=kind)))


def _struct(**columns):
    fields = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in columns.items()]
    return {"type": "struct", "fields": fields}
