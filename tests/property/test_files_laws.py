from __future__ import annotations

import io
import os
import shutil
import tempfile
import uuid
from itertools import pairwise

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from headgate.sources.files.config import FilesConfig
from headgate.sources.files.feed import FilesFeed
from headgate.sources.files.formats import decode
from headgate.sources.files.log import FileLog
from headgate.sources.files.pieces import LEAST_BYTES, OPEN_COST_BYTES, Piece, cut, lines_of, spread
from headgate.sources.files.segments import FileEntry, SegmentStore
from headgate.sources.files.sieve import Sieve
from tests.killing import STEPS, killed_at

START = {"files": 0}
sizes = st.integers(0, 1 << 22)
modified_after_s = st.integers(-2, 8) | st.just(-900)
"""Against the look before; the next is five seconds after it."""


class FilesQuery(RuleBasedStateMachine):
    """A query over a folder that may die at any moment; its checkpoint remembers offsets, as Spark's does.

    `planned` are the batches in the checkpoint with the shares that were read first; every later plan of the same
    offsets must give the same. Dead processes leave behind whatever they had written.
    """

    @initialize()
    def begin(self):
        self.root = tempfile.mkdtemp(prefix="headgate-files-")
        self.folder, self.log = os.path.join(self.root, "in"), os.path.join(self.root, "log")
        os.mkdir(self.folder)
        self.now_s, self.arrived, self.planned, self.end = 1000.0, set(), [], START
        self.restart()

    @rule()
    def restart(self):
        options = {"path": self.folder, "fileFormat": "text"}
        self.feed = FilesFeed(options, FileLog(self.log), stopwatch=lambda: 0.0)

    @rule(files=st.lists(st.tuples(st.integers(1, 30), modified_after_s), max_size=4), temporary=st.booleans())
    def files_arrive(self, files, temporary):
        for rows, after_s in files:
            path = os.path.join(self.folder, uuid.uuid4().hex)
            with open(path + ".tmp" if temporary else path, "wb") as file:
                file.write(b"123456789\n" * rows)
            if not temporary:
                os.utime(path, (self.now_s + after_s, self.now_s + after_s))
                self.arrived.add(path)

    @rule()
    def look(self):
        pending = self.feed.pending(self.end, self.tick())
        assert pending.empty == (len(self.arrived) == self.end["files"])

    @rule(max_rows=st.none() | st.integers(0, 100), tasks=st.integers(1, 4))
    def run_batch(self, max_rows, tasks):
        now_s = self.tick()
        pending = self.feed.pending(self.end, now_s)
        taken = self.feed.take(self.end, max_rows, now_s)
        files = taken.end["files"] - self.end["files"]
        assert taken.arrivals.total == files and (files > 0) == (not pending.empty)
        assert taken.arrivals.oldest_s == pending.oldest_at_s and (pending.oldest_at_s or 0) <= now_s
        assert max_rows is None or files <= 1 or taken.rows <= max_rows
        assert max_rows is not None or taken.rows == pending.rows
        self.plan(taken.end, tasks)
        self.feed.forget(self.end)

    @rule(tasks=st.integers(1, 4))
    def die_after_an_offset_was_handed_out(self, tasks):
        """Spark may have written it down: then it asks the new process for these files."""
        end = self.feed.take(self.end, None, self.tick()).end
        self.restart()
        self.plan(end, tasks)

    @rule(step=st.sampled_from(STEPS[:3]))
    def die_in_a_take(self, step):
        with killed_at(step):
            self.feed.take(self.end, None, self.tick())
        self.restart()

    @precondition(lambda self: self.planned)
    @rule(data=st.data())
    def replay(self, data):
        start, end, tasks, shares = data.draw(st.sampled_from(self.planned))
        assert self.feed.ranges(start, end, tasks) == shares

    @invariant()
    def every_file_is_in_at_most_one_batch_and_none_is_skipped(self):
        paths = self.read()
        assert len(paths) == len(set(paths)) == self.end["files"]
        assert set(paths) <= self.arrived

    def plan(self, end, tasks):
        shares = self.feed.ranges(self.end, end, tasks)
        assert len(shares) <= tasks and all(share["pieces"] for share in shares)
        if end != self.end:
            self.planned.append((self.end, end, tasks, shares))
        self.end = end

    def read(self):
        return [path for *_, shares in self.planned for share in shares for path, *_ in share["pieces"]]

    def tick(self):
        self.now_s += 5.0
        return self.now_s

    def teardown(self):
        self.restart()
        self.plan(self.feed.take(self.end, None, self.tick()).end, 2)
        assert sorted(self.read()) == sorted(self.arrived)
        shutil.rmtree(self.root)


TestFilesQuery = FilesQuery.TestCase
TestFilesQuery.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)


@given(sizes=st.lists(sizes, max_size=60), tasks=st.integers(1, 12))
def test_shares_hold_every_file_once_and_differ_by_one_file_at_most(sizes, tasks):
    entries = [FileEntry(number, f"{number}", size, 0.0, 0.0) for number, size in enumerate(sizes)]
    shares = spread([(Piece(entry.path), entry.size_bytes) for entry in entries], tasks)
    assert sorted(int(piece.path) for share in shares for piece in share) == list(range(len(sizes)))
    assert len(shares) == min(tasks, len(entries))
    loads = [sum(sizes[int(piece.path)] + OPEN_COST_BYTES for piece in share) for share in shares]
    assert not shares or max(loads) - min(loads) <= max(sizes) + OPEN_COST_BYTES


@settings(max_examples=25, deadline=None)
@given(batches=st.lists(st.integers(1, 200), min_size=1, max_size=150), reload=st.integers(1, 50))
def test_the_log_keeps_every_entry_in_few_segments_whatever_the_batches(batches, reload):
    directory = f"memory://{uuid.uuid4().hex}"
    log, total = FileLog(directory), 0
    for i, count in enumerate(batches):
        log.add(((f"{total + k}", 1, 0.0) for k in range(count)), float(i))
        total += count
        log.flush()
        log.compact()
        log = FileLog(directory) if i % reload == 0 else log
        assert len(SegmentStore(directory).names()) <= 32 + 2
    assert [entry.path for entry in FileLog(directory).entries(0, total)] == [f"{n}" for n in range(total)]


@settings(max_examples=15, deadline=None)
@given(flushed=st.integers(0, 5), step=st.sampled_from(STEPS), compact=st.booleans(), cut=st.integers(0, 4000))
def test_a_killed_write_leaves_a_loadable_log(flushed, step, compact, cut):
    with tempfile.TemporaryDirectory(prefix="headgate-log-") as directory:
        log = FileLog(directory)
        for n in range(33 if compact else flushed):
            log.add([(f"{n}", 1, 0.0)], 0.0)
            log.flush()
        durable = log.durable
        log.add([("last", 1, 0.0)], 0.0)
        with killed_at(step):
            log.compact() if compact else log.flush()
        for name in os.listdir(directory):  # a torn write may end anywhere
            if name.endswith(".tmp"):
                os.truncate(os.path.join(directory, name), cut)
        paths = [entry.path for entry in FileLog(directory).entries(0, durable)]
        assert paths == [f"{n}" for n in range(durable)]


@given(size=st.integers(0, 12 * LEAST_BYTES), others=st.integers(0, 4 * LEAST_BYTES), tasks=st.integers(1, 8))
def test_pieces_cover_a_file_without_gap_or_overlap(size, others, tasks):
    entries = [FileEntry(0, "large", size, 0.0, 0.0), FileEntry(1, "other", others, 0.0, 0.0)]
    pieces = [piece for piece, _ in cut(entries, tasks, "json") if piece.path == "large"]
    assert pieces[0].first == 0 and pieces[-1].end is None
    assert all(piece.end == after.first for piece, after in pairwise(pieces))
    sizes = [size for piece, size in cut(entries, tasks, "json")]
    assert sum(sizes) == size + others
    assert max(sizes) <= max(LEAST_BYTES, -(-(size + others) // tasks))


@given(lines=st.lists(st.binary(max_size=9).map(lambda line: line.replace(b"\n", b"")), max_size=12), data=st.data())
def test_every_line_is_in_the_piece_in_which_it_begins(lines, data):
    text = b"\n".join(lines)
    edges = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=4)))
    edges = [0, *edges]
    ends = [*edges[1:], None]
    read = [
        lines_of(io.BytesIO(text), Piece("f", first, end)).read()
        for first, end in zip(edges, ends, strict=True)
        if first != end
    ]
    assert b"".join(read) == text
    parts = [part for part in read if part]
    assert all(part.endswith(b"\n") for part in parts[:-1])


values = st.text(alphabet='a, ;"\\\\\t', min_size=1, max_size=6)


@given(
    rows=st.lists(st.tuples(st.integers(0, 99), values, values), max_size=12),
    first=st.sampled_from([b"", b"\n", b"\r\n \n"]),
    header=st.booleans(),
    end=st.sampled_from([b"\n", b"\r\n"]),
    data=st.data(),
)
def test_what_is_written_as_spark_does_is_read_again_in_any_pieces(rows, first, header, end, data):
    def quoted(value):
        return ('"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"').encode()

    lines = [b"%d,%s,%s" % (number, quoted(one), quoted(two)) for number, one, two in rows]
    text = first + end.join(([b"a,b,c"] if header else []) + lines)
    edges = [0, *sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=3, unique=True)) or [0])]
    pieces = [Piece("f", first, end) for first, end in pairwise([*edges, None]) if first != end]
    config = FilesConfig("/in", "csv", header=header, bad_records_path="/nowhere")
    schema = pa.schema([("id", pa.int64()), ("one", pa.string()), ("two", pa.string())])
    plain = [decode(io.BytesIO(text), schema, config, piece) for piece in pieces]
    sifted = [Sieve(config, schema, piece).batches(io.BytesIO(text)) for piece in pieces]
    for read in (plain, sifted):
        found = [tuple(row.values()) for batches in read for batch in batches for row in batch.to_pylist()]
        assert found == rows
