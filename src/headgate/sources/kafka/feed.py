"""The feed of Kafka topics: what waits, how old it is, and what of it goes into a batch. Reads no record.

How old records are is asked of the broker's index of timestamps, at a few moments between two looks (see
:mod:`headgate.sources.kafka.curve`). A record is never taken as older than the look that did not show it: one that was
written an hour ago and replayed now has arrived now. Before the first look there is none: a backlog is as old as its
timestamps say.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from headgate.core import compose
from headgate.core.arrivals import Arrivals
from headgate.core.split import split, worthwhile_tasks
from headgate.errors import BadParameter
from headgate.sources.feed import Offset, Pending, Range, Taken
from headgate.sources.kafka.broker import Cluster, DataLost
from headgate.sources.kafka.config import LBF, OLDEST, Beginning, KafkaConfig
from headgate.sources.kafka.curve import ArrivalCurve, Run, merged
from headgate.sources.kafka.memory import BeginningMemory
from headgate.sources.kafka.positions import (
    EARLIEST,
    LATEST,
    Partition,
    Positions,
    Slice,
    begin,
    from_offset,
    rows_in,
    slices_between,
    to_offset,
)  # fmt: skip
from headgate.sources.kafka.sizes import RecordSizes

LOOK_S = 0.05
"""Looks at the broker are at least so far apart: each costs it and us about a millisecond."""

TOPICS_S = 2.0
"""How often new partitions, and new topics of a pattern, are looked for."""

GONE_AFTER_S = 5.0
"""A partition that the brokers have not known for so long was deleted."""

SETTLE_S = 0.5
"""How often a frozen feed asks for partitions that are missing."""

STEP_S, MOST_STEPS = 0.25, 8
"""Between two looks the broker's timestamps are asked for at steps of this, but not at more than so many."""

FIRST_AGE_S, AGE_RATIO, MOST_AGES = 0.1, 1.6, 36
"""The ages at which a backlog is probed, growing: how late very late records are need not be known exactly. 36 steps
reach back 25 days."""

MOST_RUNS = 5_000
"""Of a batch's arrivals: a few hundred kilobytes as a message."""

URGENT = 0.5
"""Records that have waited for this share of their deadline go before larger backlogs."""


class KafkaFeed:
    """Partitions of topics, each read in order and exactly once."""

    def __init__(
        self,
        config: KafkaConfig,
        cluster: Cluster,
        memory: BeginningMemory,
        sizes: RecordSizes | None = None,
        deadline_s: float | None = None,
    ) -> None:
        """With `sizes` backlogs and tasks are weighed in bytes, without in records."""
        self._urgent_age_s = math.inf if deadline_s is None else URGENT * deadline_s
        self._turn = 0
        self._config = config
        self._cluster = cluster
        self._memory = memory
        self._sizes = sizes
        self._there: set[Partition] = set()
        self._ends: Positions = {}
        self._curves: dict[Partition, ArrivalCurve] = defaultdict(ArrivalCurve)
        self._looked_at_s: float | None = None
        self._missing_since_s: dict[Partition, float] = {}
        self._topics_at_s: float | None = None
        self._frozen = False

    # ---- where a query begins

    def initial(self, now_s: float) -> Offset:
        """Remembered, once known: Spark asks again when it runs a first batch a second time."""
        found = self._memory.recall()
        if found is None:
            found = self._first_positions(self._config.beginning)
            self._memory.keep(found)
        return to_offset(found)

    def _first_positions(self, beginning: Beginning) -> Positions:
        there = self._cluster.partitions()
        self._check_all_there(there)
        begins, ends = self._cluster.begins(there), self._ends if self._frozen else self._cluster.ends(there)
        if beginning.timestamp_ms is not None:
            return self._from_times(dict.fromkeys(there, beginning.timestamp_ms), ends)
        if beginning.timestamps_ms:
            self._check_named("startingOffsetsByTimestamp", beginning.timestamps_ms, there)
            return self._from_times(beginning.timestamps_ms, ends)
        if beginning.positions:
            self._check_named("startingOffsets", beginning.positions, there)
            known = {EARLIEST: begins, LATEST: ends}
            return {each: known.get(at, {}).get(each, at) for each, at in beginning.positions.items()}
        return begins if beginning.everywhere == EARLIEST else ends

    def _from_times(self, times_ms: Positions, ends: Positions) -> Positions:
        found: Positions = {}
        for at_ms in sorted(set(times_ms.values())):
            wanted = [partition for partition in times_ms if times_ms[partition] == at_ms]
            found |= self._cluster.begins_at(wanted, [at_ms / 1000])[0]
        missing = sorted(set(times_ms) - set(found))
        if missing and self._config.beginning.beyond_the_end == "error":
            raise BadParameter(
                "startingTimestamp", times_ms[missing[0]], f"no record of {missing[0]} is as young",
                'choose an earlier one, or add .option("startingOffsetsByTimestampStrategy", "latest")',
            )  # fmt: skip
        return found | {partition: ends[partition] for partition in missing}

    def _check_all_there(self, there: set[Partition]) -> None:
        wanted = self._config.subscription
        topics = {partition.topic for partition in there}
        missing = [topic for topic in wanted.topics if topic not in topics]
        missing += [str(partition) for partition in wanted.partitions if partition not in there]
        if missing:
            raise BadParameter(
                "assign" if wanted.partitions else "subscribe", ", ".join(missing), "the brokers do not have it",
                "create it first, or correct the name",
            )  # fmt: skip

    def _check_named(self, option: str, named: Positions, there: set[Partition]) -> None:
        """Spark's rule: positions are given for all partitions or for none."""
        if (unlike := sorted(set(named) ^ there)) != []:
            raise BadParameter(
                option, ", ".join(map(str, unlike)), "these partitions are either not read or not named in it",
                "name exactly the partitions that are read; -2 is the earliest record, -1 the latest",
            )  # fmt: skip

    # ---- what waits

    def pending(self, start: Offset, now_s: float) -> Pending:
        positions = from_offset(start)
        self._look(positions, now_s)
        self._check_gone(positions)
        slices = slices_between(positions, self._ends)
        if not slices:
            return Pending(0, None)
        return Pending(rows_in(slices), min(self._oldest_s(each, now_s) for each in slices))

    def next_arrival_s(self, start: Offset, now_s: float) -> float:
        return now_s + LOOK_S

    def freeze(self, now_s: float) -> None:
        """From now on nothing more arrives: ``trigger(availableNow=True)``."""
        self._look({}, now_s)
        self._frozen = True

    def forget(self, end: Offset) -> None:
        # Spark says so when the offsets of the batch after this one are in its log: it begins there from now on.
        self._memory.forget()
        for partition, position in from_offset(end).items():
            self._curves[partition].forget(position)

    def _oldest_s(self, each: Slice, now_s: float) -> float:
        partition = each.where
        return self._curves[partition].stamp_s(each.first, self._ends[partition], now_s)

    def _look(self, positions: Positions, now_s: float) -> None:
        """Ask the broker, unless that was done a moment ago."""
        before_s, before = self._looked_at_s, self._ends
        if self._frozen:
            self._settle(positions, now_s)
            return
        if before_s is not None and 0 <= now_s - before_s < LOOK_S:
            return
        asked_s = time.monotonic()
        self._find_partitions(now_s)
        self._ends = self._find_ends(positions, now_s, asked_s)
        if self._config.arrival == "timestamp" and before_s is None:
            self._probe_backlog(positions, now_s)
        elif self._config.arrival == "timestamp":
            self._probe_since(before_s or now_s, before, now_s)
        self._note(now_s, self._ends)
        self._looked_at_s = now_s

    def _find_partitions(self, now_s: float) -> None:
        if self._topics_at_s is None or not 0 <= now_s - self._topics_at_s < TOPICS_S:
            self._there = self._cluster.partitions()
            self._topics_at_s = now_s

    def _find_ends(self, positions: Positions, now_s: float, asked_s: float) -> Positions:
        """New partitions count at once, a missing one only after a while: brokers that restart forget for a moment."""
        found = self._cluster.ends(self._there)
        missing = {*self._ends, *positions} - set(found)
        # They may have let us wait for long before they answered: the while begins then.
        answered_s = now_s + time.monotonic() - asked_s
        self._missing_since_s = {each: self._missing_since_s.get(each, answered_s) for each in missing}
        waited_for = [each for each in missing if now_s - self._missing_since_s[each] < GONE_AFTER_S]
        kept = {each: self._ends.get(each, positions.get(each, 0)) for each in waited_for}
        return kept | self._with_positions_beyond(positions, found)

    def _settle(self, positions: Positions, now_s: float) -> None:
        """A feed is frozen before anybody knows where the query stands; what follows from that is made up for here.

        Time stands still from then on: partitions that the brokers have forgotten for a moment are waited for at once.
        """
        missing = set(positions) - set(self._ends) - set(self._missing_since_s)
        give_up_s = time.monotonic() + GONE_AFTER_S
        while missing:
            found = self._cluster.ends(self._cluster.partitions() & missing)
            self._ends = self._ends | found
            self._note(now_s, found)
            missing -= set(found)
            if not missing or time.monotonic() >= give_up_s:
                break
            time.sleep(SETTLE_S)
        self._missing_since_s |= dict.fromkeys(missing, now_s)
        self._ends = self._with_positions_beyond(positions, self._ends)

    def _with_positions_beyond(self, positions: Positions, ends: Positions) -> Positions:
        """A query that reads committed records only, from now on, may stand in an open transaction: it waits there."""
        beyond = [each for each, end in ends.items() if positions.get(each, 0) > end]
        if not beyond or not self._config.read_committed:
            return ends
        written = self._cluster.ends(beyond, uncommitted=True)
        return ends | {each: positions[each] for each in beyond if positions[each] <= written.get(each, 0)}

    def _probe_backlog(self, positions: Positions, now_s: float) -> None:
        """The first look: how old is what waits already?"""
        behind = [each for each, end in self._ends.items() if positions.get(each, 0) < end]
        looks: list[tuple[float, Positions]] = []
        age_s = FIRST_AGE_S
        while behind and len(looks) < MOST_AGES:
            [found] = self._cluster.begins_at(behind, [now_s - age_s])
            looks.append((now_s - age_s, {each: found.get(each, self._ends[each]) for each in behind}))
            behind = [each for each in behind if looks[-1][1][each] > positions.get(each, 0)]
            age_s *= AGE_RATIO
        for at_s, found in reversed(looks):
            self._note(at_s, found)

    def _probe_since(self, before_s: float, before: Positions, now_s: float) -> None:
        """Later looks: when did what is new arrive? While a batch runs nobody looks, and seconds may have passed."""
        moved = [each for each, end in self._ends.items() if end != before.get(each, 0)]
        steps = min(MOST_STEPS, max(1, round((now_s - before_s) / STEP_S)))
        times_s = [before_s + (now_s - before_s) * step / steps for step in range(1, steps)]
        known = {each: min(before.get(each, 0), self._ends[each]) for each in moved}
        for at_s, found in zip(times_s, self._cluster.begins_at(moved, times_s), strict=True):
            known = {each: max(offset, found.get(each, self._ends[each])) for each, offset in known.items()}
            self._note(at_s, known)

    def _note(self, at_s: float, offsets: Positions) -> None:
        for partition, offset in offsets.items():
            self._curves[partition].note(at_s, min(offset, self._ends[partition]))

    # ---- a batch

    def take(self, start: Offset, max_rows: int | None, now_s: float) -> Taken:
        positions = from_offset(start)
        self._look(positions, now_s)
        self._check_gone(positions)
        ends = self._ends
        skipped = self._check_loss(positions, ends)
        slices = slices_between(positions, ends)
        if self._sizes is not None:
            self._sizes.refresh({each.where: each.first for each in slices}, now_s)
        taken = self._compose(slices, max_rows, now_s)
        cut = [each._replace(end=each.first + count) for each, count in zip(slices, taken, strict=True) if count]
        end = self._kept(positions, ends) | {each.where: each.end for each in cut}
        return Taken(to_offset(end), rows_in(cut), self._arrivals(cut, now_s), skipped)

    def ranges(self, start: Offset, end: Offset, tasks: int, row_work_s: float | None = None) -> Sequence[Range]:
        first, last = from_offset(start), from_offset(end)
        # Refused when the batch was taken, if a topic was made anew; so this is a beginning that has moved since.
        self._report(
            [f"{each} began at {first[each]}, after {last[each]}" for each in last if first.get(each, 0) > last[each]]
        )
        slices = slices_between(first, last)
        wanted = max(self._config.min_partitions or 1, worthwhile_tasks(rows_in(slices), row_work_s, tasks))
        shares = split([each.end - each.first for each in slices], wanted, self._weights(slices))
        return [{"slices": [_part(slices[cut.range], cut.first, cut.end) for cut in share]} for share in shares]

    def _compose(self, slices: list[Slice], max_rows: int | None, now_s: float) -> list[int]:
        """How many records of each slice go into a batch that may have not room for all."""
        if max_rows is None or max_rows >= rows_in(slices):
            return [each.end - each.first for each in slices]
        # Rules serve the first of equals first: somebody else has to be the first every time.
        turn, self._turn = self._turn % len(slices), self._turn + 1
        taken = self._share_out([*slices[turn:], *slices[:turn]], max_rows, now_s)
        return [int(count) for count in np.roll(taken, turn)]

    def _share_out(self, slices: list[Slice], room: int, now_s: float) -> compose.IntArray:
        waiting = np.array([each.end - each.first for each in slices], np.int64)
        if self._config.compose == OLDEST:
            return self._oldest(slices, room, now_s, now_s)
        if self._config.compose != LBF:
            return compose.COMPOSITIONS[self._config.compose](waiting, room)
        # The largest backlogs alone would leave those of a quiet partition to wait beyond their deadline.
        urgent_before_s = now_s - self._urgent_age_s
        urgent = self._arrived(slices, urgent_before_s, now_s)
        if int(urgent.sum()) >= room:
            return self._oldest(slices, room, urgent_before_s, now_s)
        weights = self._weights(slices)
        rest, room_left = waiting - urgent, room - int(urgent.sum())
        if weights is None:
            return urgent + compose.lbf(rest, room_left)
        return urgent + compose.weighted_lbf(rest, room_left, weights)

    def _oldest(self, slices: list[Slice], room: int, before_s: float, now_s: float) -> compose.IntArray:
        """The oldest of those that arrived before a moment."""
        from_s = min(self._oldest_s(each, now_s) for each in slices)
        return compose.oldest(lambda at_s: self._arrived(slices, at_s, now_s), room, from_s, before_s)

    def _weights(self, slices: list[Slice]) -> list[float] | None:
        """Bytes of a record of each, as far as known; they may be others when a batch is run again: not its rows."""
        return None if self._sizes is None else self._sizes.weights(each.where for each in slices)

    def _arrived(self, slices: list[Slice], at_s: float, now_s: float) -> compose.IntArray:
        """How many of each slice arrived before `at_s`."""
        counts = []
        for each in slices:
            curve = self._curves[each.where]
            counts.append(min(max(curve.arrived_before(at_s, each.end, now_s), each.first), each.end) - each.first)
        return np.array(counts, np.int64) if at_s < now_s else np.array([s.end - s.first for s in slices], np.int64)

    def _arrivals(self, slices: list[Slice], now_s: float) -> Arrivals:
        """Of hundreds of partitions only the ends of each slice are told: a message must not grow without bound."""
        runs = [self._runs(each, now_s) for each in slices]
        if sum(map(len, runs)) > MOST_RUNS:
            runs = [[merged(each)] for each in runs]
        return Arrivals.of(run for each in runs for run in each)

    def _runs(self, each: Slice, now_s: float) -> list[Run]:
        partition = each.where
        return self._curves[partition].runs(each.first, each.end, self._ends[partition], now_s)

    @staticmethod
    def _kept(positions: Positions, ends: Positions) -> Positions:
        """Where partitions are of which nothing is taken; those that are gone are dropped."""
        return {each: begin(positions.get(each), end) for each, end in ends.items()}

    def _check_gone(self, positions: Positions) -> None:
        """Whole partitions: nobody knows what was left in them."""
        self._report([f"{each} is gone" for each in sorted(set(positions) - set(self._ends))])

    def _check_loss(self, positions: Positions, ends: Positions) -> int:
        """Records that are gone before they were read: an error, or counted and skipped."""
        begins = self._cluster.begins(ends)
        lost, skipped = [], 0
        for partition, end in sorted(ends.items()):
            position, first = positions.get(partition), begins.get(partition, 0)
            if position is not None and position > end:
                lost.append(f"{partition} ends at {end}, but {position} had been reached: it was made anew")
            missed = first - begin(position, end)
            if missed > 0:
                lost.append(f"{partition} begins at {first} now: {missed} records were deleted")
                skipped += missed
                positions[partition] = first
        self._report(lost)
        return skipped

    def _report(self, lost: list[str]) -> None:
        if lost and self._config.fail_on_data_loss:
            raise DataLost(
                f"{self._config}: {'; '.join(lost)}; to go on with what is there, start the query with"
                ' .option("failOnDataLoss", "false"): what is skipped will be counted'
            )


def _part(each: Slice, first: int, end: int) -> list[str | int]:
    return [each.topic, each.partition, each.first + first, each.first + end]
