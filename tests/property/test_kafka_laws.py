"""Offset arithmetic of the Kafka source: nothing twice, nothing lost, whatever is appended, added or taken when."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from headgate.sources.kafka.config import KafkaConfig
from headgate.sources.kafka.curve import ArrivalCurve
from headgate.sources.kafka.feed import KafkaFeed
from headgate.sources.kafka.memory import ForgetfulMemory
from headgate.sources.kafka.positions import Partition, from_offset, slices_between, to_offset
from headgate.sources.kafka.sizes import RecordSizes
from tests.kafka_memory import MemoryCluster

OPTIONS = {"kafka.bootstrap.servers": "b:9092", "subscribe": "t", "startingOffsets": "earliest"}

partitions = st.builds(Partition, st.sampled_from(["a", "b.c", "ü"]), st.integers(0, 3))
positions = st.dictionaries(partitions, st.integers(0, 30), max_size=6)


@given(positions)
def test_an_offset_survives_the_checkpoint(given_positions: dict[Partition, int]) -> None:
    assert from_offset(to_offset(given_positions)) == given_positions


@given(positions, positions)
def test_slices_cover_what_lies_between(start: dict[Partition, int], end: dict[Partition, int]) -> None:
    for each in slices_between(start, end):
        partition = Partition(each.topic, each.partition)
        assert each.end == end[partition]
        assert each.first == (start[partition] if start.get(partition, 99) <= each.end else 0)
    unchanged = {partition for partition in end if start.get(partition) == end[partition]}
    assert not unchanged & {Partition(each.topic, each.partition) for each in slices_between(start, end)}


@given(st.lists(st.tuples(st.floats(0.01, 5), st.integers(0, 50)), min_size=1, max_size=10), st.data())
def test_a_curve_gives_each_record_a_stamp_between_its_knots(
    steps: list[tuple[float, int]], data: st.DataObject
) -> None:
    curve, at_s, offset, knots = ArrivalCurve(), 100.0, 0, []
    for pause_s, rows in steps:
        at_s, offset = at_s + pause_s, offset + rows
        curve.note(at_s, offset)
        knots.append((at_s, offset))
    newest, now_s = offset + data.draw(st.integers(0, 20)), at_s + 1.0
    first = data.draw(st.integers(0, newest))
    end = data.draw(st.integers(first, newest))
    stamps = [
        from_s + k * step_s for from_s, step_s, count in curve.runs(first, end, newest, now_s) for k in range(count)
    ]
    assert len(stamps) == end - first
    assert all(a <= b + 1e-9 for a, b in pairwise(stamps))
    for record, stamp_s in enumerate(stamps, first):
        later = [at for at, known in knots if known > record]
        earlier = [at for at, known in knots if known <= record]
        assert stamp_s <= (later[0] if later else now_s) + 1e-9
        assert stamp_s >= (earlier[-1] if earlier else knots[0][0]) - 1e-9
        assert abs(curve.stamp_s(record, newest, now_s) - stamp_s) < 1e-6
    for record in range(first, end):
        if record >= knots[0][1]:
            assert curve.arrived_before(curve.stamp_s(record, newest, now_s) + 1e-7, newest, now_s) >= record


class ReadingTopics(RuleBasedStateMachine):
    """Appends, new partitions, batches of any size and restarts, against a plain list of what was ever appended."""

    @initialize(
        count=st.integers(1, 3),
        how=st.sampled_from(["lbf", "proportional", "round-robin", "oldest"]),
        sizes=st.none() | st.lists(st.integers(0, 10_000), max_size=3),
    )
    def begin(self, count: int, how: str, sizes: list[int] | None) -> None:
        self.cluster = MemoryCluster(t=count)
        self.weighed = sizes is not None
        self.cluster.sizes = {Partition("t", number): size for number, size in enumerate(sizes or [])}
        self.options = {**OPTIONS, "compose": how}
        self.now_s = 1000.0
        self.memory = ForgetfulMemory()
        self.feed = self.open()
        self.offset = self.feed.initial(self.now_s)
        self.read: list[tuple[Partition, int]] = []

    def open(self) -> KafkaFeed:
        sizes = RecordSizes(self.cluster.sample) if self.weighed else None
        return KafkaFeed(KafkaConfig.parse(self.options), self.cluster, self.memory, sizes)

    @rule(number=st.integers(0, 5), rows=st.integers(1, 20), pause_s=st.floats(0.06, 4))
    def append(self, number: int, rows: int, pause_s: float) -> None:
        partition = Partition("t", number % len(self.cluster.stamps))
        self.cluster.append(partition, *(self.now_s + pause_s * k / rows for k in range(rows)))
        self.now_s += pause_s

    @rule()
    def add_partition(self) -> None:
        if len(self.cluster.stamps) < 6:
            self.cluster.stamps[Partition("t", len(self.cluster.stamps))] = []

    @rule(max_rows=st.none() | st.integers(1, 30))
    def batch(self, max_rows: int | None) -> None:
        self.now_s += 3.0  # long enough to look for new partitions
        pending = self.feed.pending(self.offset, self.now_s)
        if pending.empty:
            return
        assert pending.oldest_at_s is not None and pending.oldest_at_s <= self.now_s
        taken = self.feed.take(self.offset, max_rows, self.now_s)
        assert taken.rows == taken.arrivals.total > 0
        assert max_rows is None or taken.rows <= max_rows
        shares = self.feed.ranges(self.offset, taken.end, 3)
        rows = [
            (Partition(t, p), row)
            for share in shares
            for t, p, first, end in share["slices"]
            for row in range(first, end)
        ]
        assert len(rows) == taken.rows
        self.read += rows
        self.offset = taken.end
        self.feed.forget(taken.end)

    @rule()
    def restart(self) -> None:
        self.feed = self.open()

    @invariant()
    def nothing_twice_and_in_order(self) -> None:
        if not hasattr(self, "read"):
            return
        by_partition: dict[Partition, list[int]] = {}
        for partition, row in self.read:
            by_partition.setdefault(partition, []).append(row)
        for partition, rows in by_partition.items():
            assert rows == list(range(from_offset(self.offset)[partition]))

    def teardown(self) -> None:
        if not hasattr(self, "read"):
            return
        self.batch(None)
        assert len(self.read) == len(set(self.read)) == sum(map(len, self.cluster.stamps.values()))


TestReadingTopics = ReadingTopics.TestCase
TestReadingTopics.settings = settings(max_examples=60, stateful_step_count=20)
