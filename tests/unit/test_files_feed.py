from __future__ import annotations

import os
import uuid

import fsspec
import pyarrow as pa
import pytest

from headgate.errors import BadParameter, StateError
from headgate.sources.feed import Pending
from headgate.sources.files import listing as file_listing
from headgate.sources.files.feed import FileRangeReader, FilesFeed, arrived_s
from headgate.sources.files.listing import LocalListing, listing_of
from headgate.sources.files.log import FileLog

START = {"files": 0}
LINE = b'{"a":1234}\n'


class Folder:
    """A folder of JSON files, and feeds that read it with one log; time stands still on every stopwatch."""

    def __init__(self, root):
        self.path = root / "in"
        self.path.mkdir()
        self.log = str(root / "log")

    def put(self, name, rows=1, modified_s=50.0):
        path = self.path / name
        path.write_bytes(LINE * rows)
        os.utime(path, (modified_s, modified_s))
        return str(path)

    def feed(self, stopwatch=lambda: 0.0, **options):
        options = {"path": str(self.path), "fileFormat": "json", **options}
        return FilesFeed(options, FileLog(self.log), stopwatch=stopwatch)


@pytest.fixture
def folder(tmp_path):
    return Folder(tmp_path)


def names(feed, start, end):
    return [os.path.basename(path) for share in feed.ranges(start, end, 1) for path, *_ in share["pieces"]]


class TestTaking:
    def test_begins_with_nothing(self, folder):
        feed = folder.feed()
        assert feed.initial(100.0) == START
        assert feed.pending(START, 100.0) == Pending(0, None)
        taken = feed.take(START, None, 100.0)
        assert (taken.end, taken.rows, taken.arrivals.total) == (START, 0, 0)
        assert feed.ranges(START, START, 4) == []

    def test_takes_whole_files_up_to_the_limit(self, folder):
        for i in range(4):
            folder.put(f"{i}", rows=10)
        feed = folder.feed()
        assert feed.pending(START, 100.0).rows == 40
        taken = feed.take(START, 29, 100.0)
        assert (taken.end, taken.rows, taken.arrivals.total) == ({"files": 2}, 20, 2)
        assert feed.pending(taken.end, 100.0).rows == 20
        assert feed.take(taken.end, 20, 100.0).end == {"files": 4}

    def test_takes_at_least_one_file(self, folder):
        folder.put("a", rows=10)
        folder.put("b", rows=10)
        for max_rows in (0, 1, 9):
            assert folder.feed().take(START, max_rows, 100.0).end == {"files": 1}

    def test_takes_no_more_files_than_the_user_allows(self, folder):
        for i in range(4):
            folder.put(f"{i}")
        feed = folder.feed(maxFilesPerTrigger="3")
        assert feed.take(START, None, 100.0).end == {"files": 3}
        assert feed.take(START, 2, 100.0).end == {"files": 2}

    def test_takes_no_more_bytes_than_the_user_allows_but_one_file(self, folder):
        for name, rows in (("a", 2), ("b", 1), ("c", 9), ("d", 1)):
            folder.put(name, rows)
        feed = folder.feed(maxBytesPerTrigger=str(3 * len(LINE)))
        ends = [START]
        while (end := feed.take(ends[-1], None, 100.0).end) != ends[-1]:
            ends.append(end)
        assert [end["files"] for end in ends] == [0, 2, 3, 4]
        assert feed.take(START, 2, 100.0).end == {"files": 1}

    def test_an_offset_means_the_same_files_after_a_crash(self, folder):
        folder.put("b")
        taken = folder.feed().take(START, None, 100.0)
        folder.put("a", modified_s=1.0)
        after = folder.feed()
        assert names(after, START, taken.end) == ["b"]
        rest = after.take(taken.end, None, 101.0)
        assert names(after, taken.end, rest.end) == ["a"]

    def test_looking_alone_promises_nothing_and_writes_nothing(self, folder):
        folder.put("b")
        folder.feed().pending(START, 100.0)
        assert len(FileLog(folder.log)) == 0

    def test_a_file_is_read_once_even_if_it_is_written_again(self, folder):
        folder.put("a")
        feed = folder.feed()
        end = feed.take(START, None, 100.0).end
        folder.put("a", rows=5, modified_s=150.0)
        assert feed.pending(end, 200.0).empty

    def test_counts_again_when_asked_about_earlier_files(self, folder):
        for i in range(3):
            folder.put(f"{i}", rows=2)
        feed = folder.feed()
        end = feed.take(START, 2, 100.0).end
        later = folder.feed()
        assert later.pending(end, 100.0).rows == 4
        assert later.pending(START, 100.0).rows == 6

    def test_tidies_the_log_when_batches_are_committed(self, folder):
        feed, end = folder.feed(), START
        for i in range(40):
            folder.put(f"{i}")
            end = feed.take(end, None, 100.0 + i).end
            feed.forget(end)
        assert len(os.listdir(folder.log)) < 40
        assert len(FileLog(folder.log)) == 40

    def test_works_on_other_filesystems(self):
        root = f"memory://{uuid.uuid4().hex}"
        for name in ("a", "b"):
            _write(f"{root}/in/{name}")
        options = {"path": f"{root}/in", "fileFormat": "json"}
        end = FilesFeed(options, FileLog(f"{root}/log")).take(START, None, 100.0).end
        after = FilesFeed(options, FileLog(f"{root}/log"))
        assert names(after, START, end) == ["a", "b"]
        reader = FileRangeReader(after.config, pa.schema([("a", pa.int64())]))
        assert [batch.to_pylist() for batch in reader(after.ranges(START, end, 1)[0])] == [[{"a": 1234}]] * 2


class TestOffsets:
    @pytest.mark.parametrize("offset", [{}, {"files": -1}, {"files": "3"}, {"files": True}, {"rows": 3}])
    def test_of_another_source_are_refused(self, folder, offset):
        with pytest.raises(StateError, match="no offset of a files source"):
            folder.feed().pending(offset, 100.0)

    def test_beyond_the_log_are_refused_whatever_lies_in_the_folder(self, folder):
        for i in range(3):
            folder.put(f"{i}")
        feed = folder.feed()
        feed.pending(START, 100.0)
        for ask in (feed.pending, lambda start, now_s: feed.take(start, None, now_s)):
            with pytest.raises(StateError, match=r"counts 2 files, but the file log has 0.*new checkpoint"):
                ask({"files": 2}, 101.0)
        with pytest.raises(StateError):
            feed.ranges(START, {"files": 2}, 1)


class TestArrivals:
    def test_at_the_very_first_look_are_that_look(self, folder):
        folder.put("old", modified_s=1.0)
        assert folder.feed().pending(START, 100.0) == Pending(1, 100.0)

    def test_are_modification_times_between_two_looks(self, folder):
        feed = folder.feed()
        feed.pending(START, 100.0)
        folder.put("renamed in", modified_s=1.0)
        folder.put("ahead of time", modified_s=500.0)
        folder.put("usual", modified_s=102.5)
        assert feed.pending(START, 104.0).oldest_at_s == 100.0
        taken = feed.take(START, None, 104.0)
        assert [run[0] for run in taken.arrivals.to_json()] == [100.0, 102.5, 104.0]
        assert names(feed, START, taken.end) == ["renamed in", "usual", "ahead of time"]

    def test_during_a_stop_are_counted_from_the_last_find(self, folder):
        folder.put("a")
        end = folder.feed().take(START, None, 100.0).end
        folder.put("while it was down", modified_s=130.0)
        folder.put("copied", modified_s=1.0)
        taken = folder.feed().take(end, None, 200.0)
        assert [run[0] for run in taken.arrivals.to_json()] == [100.0, 130.0]

    def test_may_be_the_first_sight(self, folder):
        feed = folder.feed(arrival="seen")
        feed.pending(START, 100.0)
        folder.put("a", modified_s=101.0)
        folder.put("b", modified_s=102.0)
        assert feed.pending(START, 104.0).oldest_at_s == 104.0
        assert feed.take(START, None, 104.0).arrivals.to_json() == [[104.0, 0.0, 2]]

    @pytest.mark.parametrize(
        ("modified_s", "floor_s", "expected_s"), [(5.0, None, 9.0), (5.0, 3.0, 5.0), (1.0, 3.0, 3.0), (11.0, 3.0, 9.0)]
    )
    def test_rule(self, modified_s, floor_s, expected_s):
        assert arrived_s(modified_s, floor_s, 9.0) == expected_s


class TestLooking:
    def test_rests_between_looks(self, folder):
        feed = folder.feed(pollInterval="500ms")
        assert feed.pending(START, 100.0).empty
        folder.put("a")
        assert feed.pending(START, 100.4).empty
        assert feed.next_arrival_s(START, 100.4) == 100.5
        assert not feed.pending(START, 100.5).empty
        assert feed.next_arrival_s(START, 100.5) == 101.0

    def test_spends_a_twentieth_of_the_time_at_most(self, folder):
        ticks = iter(range(1000))
        feed = folder.feed(stopwatch=lambda: next(ticks) * 0.1)
        feed.pending(START, 100.0)
        assert feed.next_arrival_s(START, 100.0) == pytest.approx(102.0)

    def test_goes_on_when_the_clock_is_set_back(self, folder):
        feed = folder.feed()
        feed.pending(START, 1000.0)
        folder.put("a")
        assert feed.next_arrival_s(START, 100.0) == pytest.approx(100.2)
        assert not feed.pending(START, 100.0).empty


class TestListing:
    def test_hidden_and_unfinished_files_and_folders_are_left_out(self, folder):
        for name in ("_SUCCESS", ".hidden", "a.tmp", "a.json._COPYING_", "a.crdownload", "a.json"):
            folder.put(name)
        (folder.path / "sub").mkdir()
        feed = folder.feed()
        assert names(feed, START, feed.take(START, None, 100.0).end) == ["a.json"]

    def test_an_empty_file_waits_until_it_is_filled(self, folder):
        folder.put("a", rows=0)
        feed = folder.feed()
        assert feed.pending(START, 100.0).empty
        folder.put("a", rows=3)
        assert feed.pending(START, 101.0).rows == 3

    def test_a_glob_of_names(self, folder):
        folder.put("a.json")
        folder.put("a.csv")
        assert [os.path.basename(file.path) for file in listing(f"{folder.path}/*.json")] == ["a.json"]

    @pytest.mark.parametrize("glob", ["day=*", "day=?/*.json", "**/*.json", "**"])
    def test_a_glob_of_folders(self, folder, glob):
        for sub in ("day=1", "day=2", "_temporary"):
            (folder.path / sub).mkdir()
            folder.put(f"{sub}/x.json")
        (folder.path / "day=1" / "deep").mkdir()
        if "**" in glob:
            folder.put("day=1/deep/x.json")
        found = [os.path.relpath(file.path, folder.path) for file in listing(f"{folder.path}/{glob}")]
        deep = ["day=1/deep/x.json"] if "**" in glob else []
        assert sorted(set(found)) == [*deep, "day=1/x.json", "day=2/x.json"]

    @pytest.mark.parametrize(
        ("glob", "found"),
        [
            ("*.json", ["a.json"]),
            ("*.{csv,txt}", ["b.csv", "c.txt"]),
            ("[^ab].*", ["c.txt"]),
            ("{a,b}.{csv,json}", ["a.json", "b.csv"]),
        ],
    )
    def test_names_may_be_filtered(self, folder, glob, found):
        root = f"memory://in-{uuid.uuid4().hex}"
        (folder.path / "sub").mkdir()
        for name in ("a.json", "b.csv", "c.txt"):
            folder.put(name)
            folder.put(f"sub/{name}")
            _write(f"{root}/{name}")
        for url in (str(folder.path), f"{folder.path}/su*", root):
            files = listing_of(url, glob).new_files(frozenset(), 100.0)
            assert sorted(os.path.basename(file.path) for file in files) == found
        feed = folder.feed(pathGlobFilter=glob)
        assert names(feed, START, feed.take(START, None, 100.0).end) == found

    def test_a_filter_does_not_hide_folders_that_may_get_files(self, folder):
        (folder.path / "day=1").mkdir()
        looks = listing_of(f"{folder.path}/day=*", "*.json")
        folder.put("day=1/a.json")
        known = {file.path for file in looks.new_files(frozenset(), 100.0)}
        (folder.path / "day=2").mkdir()
        folder.put("day=2/a.json")  # now the time of change of the folder above is trusted
        os.utime(folder.path, (50.0, 50.0))
        known |= {file.path for file in looks.new_files(known, 1e10)}
        folder.put("day=1/b.json")
        assert [os.path.basename(file.path) for file in looks.new_files(known, 1e10 + 1)] == ["b.json"]

    def test_a_folder_of_folders_is_told_once(self, folder, capsys):
        (folder.path / "date=2026-01-01").mkdir()
        folder.put("date=2026-01-01/a")
        (folder.path / "_hidden").mkdir()
        feed = folder.feed()
        for now_s in (100.0, 200.0):
            assert feed.pending(START, now_s).empty
        told = capsys.readouterr().err
        assert told.count("WARNING") == 1 and f"{folder.path}/*" in told
        folder.put("a")
        folder.feed().pending(START, 300.0)
        assert not capsys.readouterr().err

    def test_a_remote_folder_of_folders_is_told(self, capsys):
        root = f"memory://in-{uuid.uuid4().hex}"
        _write(f"{root}/date=1/a.json")
        for path, warned in ((root, True), (f"{root}/*", False), (f"{root}/nowhere", False)):
            FilesFeed({"path": path, "fileFormat": "json"}, FileLog(f"{root}-log")).pending(START, 100.0)
            assert ("WARNING" in capsys.readouterr().err) == warned

    def test_a_folder_whose_name_looks_like_a_glob(self, tmp_path):
        (tmp_path / "in[1]").mkdir()
        (tmp_path / "in[1]" / "a").write_text("x")
        assert len(listing(str(tmp_path / "in[1]"))) == 1

    def test_another_filesystem(self):
        root = f"memory://in-{uuid.uuid4().hex}"
        for name in ("a.json", "_b.json", "empty.json", "sub/c.json"):
            fsspec.open(f"{root}/{name}", "wb").open().close() if "empty" in name else _write(f"{root}/{name}")
        assert [os.path.basename(file.path) for file in listing(root)] == ["a.json"]
        assert [os.path.basename(file.path) for file in listing(f"{root}/*/*.json")] == ["c.json"]
        assert listing("memory://nowhere") == []

    def test_a_folder_that_is_not_there_is_refused(self, folder):
        for path in (folder.path / "missing", folder.path / "missing" / "*.json", folder.put("file")):
            with pytest.raises(BadParameter, match="there is no such folder"):
                listing_of(str(path))

    def test_a_folder_that_goes_away_is_empty(self, folder):
        feed = folder.feed()
        folder.path.rmdir()
        assert feed.pending(START, 100.0).empty

    @pytest.mark.parametrize("value", [90.0, "1970-01-01T00:01:30Z", "1970-01-01T01:01:30+01:00"])
    def test_modification_times_come_in_many_shapes(self, value):
        assert file_listing._modified_s({"LastModified": value}, 100.0) == 90.0
        assert file_listing._modified_s({}, 100.0) == 100.0


def listing(url):
    return listing_of(url).new_files(frozenset(), 100.0)


def _write(url):
    with fsspec.open(url, "wb") as file:
        file.write(LINE)


class TestUnchangedFolder:
    """The folder's time of change is set by hand: t is when it last changed, looks are at the times given."""

    @pytest.fixture
    def walks(self, monkeypatch):
        seen, scandir = [], os.scandir

        def counted(path):
            seen.append(path)
            return scandir(path)

        monkeypatch.setattr(os, "scandir", counted)
        return seen

    def look(self, listing, folder, changed_s, now_s, known):
        os.utime(folder.path, (changed_s, changed_s))
        found = {file.path for file in listing.new_files(known, now_s)}
        known |= found
        return {os.path.basename(path) for path in found}

    def test_is_not_walked_once_its_time_is_known_to_move(self, folder, walks):
        listing, known = LocalListing(str(folder.path)), set[str]()
        folder.put("a")
        assert self.look(listing, folder, 10.0, 100.0, known) == {"a"}
        assert self.look(listing, folder, 10.0, 101.0, known) == set()
        assert len(walks) == 2  # not trusted yet
        folder.put("b")
        assert self.look(listing, folder, 99.0, 102.0, known) == {"b"}
        assert self.look(listing, folder, 99.0, 103.0, known) == set()
        assert len(walks) == 3
        folder.put("c")
        assert self.look(listing, folder, 103.5, 104.0, known) == {"c"}

    def test_is_walked_while_its_last_change_is_fresh(self, folder, walks):
        listing, known = self.trusting(folder)
        folder.put("b")
        self.look(listing, folder, 103.0, 104.0, known)
        folder.put("same tick")
        assert self.look(listing, folder, 103.0, 104.2, known) == {"same tick"}

    def test_is_walked_now_and_then_all_the_same(self, folder, walks):
        listing, known = self.trusting(folder)
        folder.put("b")
        assert self.look(listing, folder, 99.0, 103.0, known) == set()
        assert self.look(listing, folder, 99.0, 102.0 + file_listing.RELIST_AFTER_S, known) == {"b"}
        folder.put("c")  # and its time is not believed any more
        assert self.look(listing, folder, 99.0, 114.0, known) == {"c"}

    def test_is_walked_while_an_empty_file_waits(self, folder, walks):
        listing, known = self.trusting(folder)
        folder.put("b", rows=0)
        self.look(listing, folder, 99.5, 103.0, known)
        folder.put("b")
        assert self.look(listing, folder, 99.5, 104.0, known) == {"b"}

    def trusting(self, folder):
        listing, known = LocalListing(str(folder.path)), set[str]()
        self.look(listing, folder, 10.0, 100.0, known)
        folder.put("a")
        self.look(listing, folder, 99.0, 102.0, known)
        return listing, known
