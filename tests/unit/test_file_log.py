from __future__ import annotations

import os
import subprocess
import sys
import uuid

import pytest

from headgate.errors import StateError
from headgate.sources.files.log import MAX_SEGMENTS, FileLog, chain, merge_point
from headgate.sources.files.segments import FileEntry, Segment, SegmentStore
from tests.killing import STEPS, killed_at, log_files


def found(*names, size_bytes=10):
    return [(name, size_bytes, 100.0) for name in names]


def written(directory, *batches):
    """A log to which every batch of names was added and flushed."""
    log = FileLog(str(directory))
    for at_s, names in enumerate(batches):
        log.add(found(*names), float(at_s))
        log.flush()
    return log


def names_in(log):
    return [entry.path for entry in log.entries(0, len(log))]


@pytest.fixture
def memory_folder():
    return f"memory://log-{uuid.uuid4().hex}"


def test_entries_are_numbered_in_the_order_of_discovery_and_survive(tmp_path):
    log = FileLog(str(tmp_path / "log"))
    log.add([("b", 7, 1.5)], seen_s=2.0)
    log.add([("a", 8, 0.5)], seen_s=3.25)
    log.flush()
    expected = [FileEntry(0, "b", 7, 1.5, 2.0), FileEntry(1, "a", 8, 0.5, 3.25)]
    assert log.entries(0, 2) == expected
    assert FileLog(str(tmp_path / "log")).entries(0, 2) == expected
    assert FileLog(str(tmp_path / "log")).last_seen_s == 3.25


def test_only_what_was_flushed_is_durable(tmp_path):
    log = written(tmp_path, "ab")
    log.add(found("c"), 9.0)
    assert (len(log), log.durable) == (3, 2)
    assert names_in(FileLog(str(tmp_path))) == ["a", "b"]


def test_a_path_is_noted_once(tmp_path):
    log = written(tmp_path, "ab")
    log.add(found("b", "c", "c"), 1.0)
    assert names_in(log) == ["a", "b", "c"]
    again = written(tmp_path / "other", "ab", "bc")
    assert names_in(again) == ["a", "b", "c"]


def test_flushing_nothing_writes_nothing(tmp_path):
    log = written(tmp_path, "a")
    before = log_files(tmp_path)
    log.flush()
    assert log_files(tmp_path) == before


def test_names_that_are_not_unicode_come_back(tmp_path):
    name = os.fsdecode(b"/in/caf\xe9 \n,.json")
    written(tmp_path, [name])
    assert names_in(FileLog(str(tmp_path))) == [name]


def test_it_works_on_other_filesystems(memory_folder):
    written(memory_folder, "ab", "c")
    assert names_in(FileLog(memory_folder)) == ["a", "b", "c"]


def test_entries_that_do_not_exist_are_a_state_error(tmp_path):
    with pytest.raises(StateError, match=r"files 1 to 3 are not in the log of 2.*new checkpoint"):
        written(tmp_path, "ab").entries(1, 3)


def test_a_folder_that_cannot_be_made_is_a_state_error(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StateError, match="writable"):
        FileLog(str(tmp_path / "file"))


class TestDamage:
    @pytest.mark.parametrize(
        ("damage", "problem"),
        [
            (lambda data: data[:-3], "checksum"),
            (lambda data: data.replace(b'"a"', b'"x"'), "checksum"),
            (lambda data: b"", "damaged"),
            (lambda data: b"[1]\n", "begin with"),
            (lambda data: data.replace(b"log/1", b"log/9"), "begin with"),
        ],
    )
    def test_of_a_segment_is_told_with_its_path_and_a_remedy(self, tmp_path, damage, problem):
        written(tmp_path, "ab", "c")
        segment = tmp_path / log_files(tmp_path)[0]
        segment.write_bytes(damage(segment.read_bytes()))
        with pytest.raises(StateError, match=rf"{segment}.*{problem}.*new checkpoint"):
            FileLog(str(tmp_path))

    def test_by_a_missing_segment(self, tmp_path):
        written(tmp_path, "ab", "c", "d")
        (tmp_path / log_files(tmp_path)[1]).unlink()
        with pytest.raises(StateError, match="files 2 to 3 are missing"):
            FileLog(str(tmp_path))

    def test_while_it_runs(self, tmp_path):
        log = written(tmp_path, "ab")
        (tmp_path / log_files(tmp_path)[0]).unlink()
        log.add(found("c"), 1.0)
        with pytest.raises(StateError, match="deleted while the query ran"):
            log.flush()

    def test_strange_files_are_left_alone(self, tmp_path):
        written(tmp_path, "ab")
        (tmp_path / "README").write_text("hello")
        assert names_in(written(tmp_path, "c")) == ["a", "b", "c"]
        assert "README" in log_files(tmp_path)


class TestTwoWriters:
    def test_the_later_one_stops_and_leaves_no_trace(self, tmp_path):
        first, second = FileLog(str(tmp_path)), FileLog(str(tmp_path))
        first.add(found("a"), 1.0)
        first.flush()
        second.add(found("b", "c"), 1.0)
        with pytest.raises(StateError, match="another process writes this file log"):
            second.flush()
        assert second.durable == 0
        assert names_in(FileLog(str(tmp_path))) == ["a"]

    def test_the_later_one_does_not_even_write_if_it_can_be_seen(self, tmp_path, monkeypatch):
        second = FileLog(str(tmp_path))
        written(tmp_path, "a")
        second.add(found("b"), 1.0)
        monkeypatch.setattr(SegmentStore, "write", lambda *args: pytest.fail("it wrote"))
        with pytest.raises(StateError, match="another process"):
            second.flush()

    def test_also_when_their_segments_are_merged_away(self, tmp_path):
        second = FileLog(str(tmp_path))
        first = written(tmp_path, *([f"a{i}"] for i in range(MAX_SEGMENTS + 1)))
        first.compact()
        assert len(log_files(tmp_path)) == 1
        second.add(found("b"), 1.0)
        with pytest.raises(StateError, match="another process"):
            second.flush()

    def test_also_when_the_other_writes_in_between(self, tmp_path, monkeypatch):
        first, second = FileLog(str(tmp_path)), FileLog(str(tmp_path))
        for log, name in ((first, "a"), (second, "b")):
            log.add(found(name), 1.0)
        publish = SegmentStore.write

        def overtaken(store, segment, data):
            monkeypatch.setattr(SegmentStore, "write", publish)
            first.flush()
            publish(store, segment, data)

        monkeypatch.setattr(SegmentStore, "write", overtaken)
        with pytest.raises(StateError, match="another process"):
            second.flush()
        assert names_in(FileLog(str(tmp_path))) == ["a"]

    def test_segments_of_both_are_never_guessed_between(self, tmp_path):
        written(tmp_path / "one", "a")
        written(tmp_path / "two", "b")
        for name in log_files(tmp_path / "two"):
            (tmp_path / "two" / name).rename(tmp_path / "one" / name)
        with pytest.raises(StateError, match="two processes"):
            FileLog(str(tmp_path / "one"))


class TestDeath:
    @pytest.mark.parametrize("step", STEPS[:3])
    def test_in_a_flush_leaves_the_log_as_before_or_after(self, tmp_path, step):
        log = written(tmp_path, "ab")
        log.add(found("c", "d"), 2.0)
        with killed_at(step):
            log.flush()
        reloaded = FileLog(str(tmp_path))
        assert names_in(reloaded) == (["a", "b", "c", "d"] if step == "not synced" else ["a", "b"])
        reloaded.add(found("e"), 3.0)
        reloaded.flush()
        assert names_in(FileLog(str(tmp_path)))[-1] == "e"

    @pytest.mark.parametrize("step", STEPS)
    def test_in_a_compaction_loses_nothing_and_is_tidied_by_the_next(self, tmp_path, step):
        batches = [[f"{i}"] for i in range(MAX_SEGMENTS + 1)]
        log = written(tmp_path, *batches)
        with killed_at(step):
            log.compact()
        reloaded = FileLog(str(tmp_path))
        assert names_in(reloaded) == [f"{i}" for i in range(MAX_SEGMENTS + 1)]
        for i in range(100, 100 + MAX_SEGMENTS):
            reloaded.add(found(f"{i}"), 3.0)
            reloaded.flush()
        reloaded.compact()
        assert len(log_files(tmp_path)) <= 2
        assert len(FileLog(str(tmp_path))) == 2 * MAX_SEGMENTS + 1

    def test_by_a_signal_loses_nothing_that_was_promised(self, tmp_path):
        program = (
            "import sys; from headgate.sources.files.log import FileLog\n"
            "log = FileLog(sys.argv[1])\n"
            "for i in range(10**6):\n"
            "    log.add([(f'{i}', 1, 1.0)], 1.0); log.flush(); log.compact(); print(log.durable, flush=True)\n"
        )
        process = subprocess.Popen(
            [sys.executable, "-c", program, str(tmp_path)],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(100)]
        process.kill()
        promised = int((lines + process.stdout.read().splitlines())[-1])
        process.wait()
        log = FileLog(str(tmp_path))
        assert len(log) >= promised >= 100
        assert names_in(log) == [f"{i}" for i in range(len(log))]


class TestFailedWrites:
    def test_are_told_and_can_be_repeated(self, tmp_path, monkeypatch):
        log = written(tmp_path, "a")
        log.add(found("b"), 1.0)
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", _no_space)
            with pytest.raises(StateError, match=r"No space left.*make room"):
                log.flush()
        assert log.durable == 1
        log.flush()
        assert names_in(FileLog(str(tmp_path))) == ["a", "b"]


def _no_space(handle):
    raise OSError(28, "No space left on device")


class TestCompaction:
    def test_keeps_few_segments_and_every_entry(self, memory_folder):
        log = FileLog(memory_folder)
        for i in range(600):
            log.add(found(f"{i}"), 1.0)
            log.flush()
            log.compact()
        assert len(SegmentStore(memory_folder).names()) <= MAX_SEGMENTS
        assert names_in(FileLog(memory_folder)) == [f"{i}" for i in range(600)]

    def test_leaves_a_large_old_segment_alone(self):
        assert merge_point([100_000] + [1] * MAX_SEGMENTS) == 1

    def test_waits_until_it_is_worth_while(self):
        assert merge_point([1] * MAX_SEGMENTS) is None


def test_chain_prefers_the_longer_segment_and_names_the_covered():
    merged, tail = Segment(0, 3, "b" * 8), Segment(3, 5, "a" * 8)
    covered = [Segment(0, 1, "a" * 8), Segment(1, 3, "a" * 8)]
    assert chain([*covered, tail, merged]) == ([merged, tail], covered)


@pytest.mark.parametrize(
    ("spans", "problem"), [([(1, 2)], "0 to 1 are missing"), ([(0, 3), (2, 5)], "2 to 3 are there twice")]
)
def test_chain_refuses_gaps_and_overlaps(spans, problem):
    with pytest.raises(ValueError, match=problem):
        chain(Segment(first, end, "0" * 8) for first, end in spans)
