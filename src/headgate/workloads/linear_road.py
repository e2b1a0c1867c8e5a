"""Position reports of the Linear Road benchmark, any range of them at once.

Record i is report number i // vehicles of vehicle i % vehicles, so a round of all vehicles takes 30 s if there are 30
vehicles for every record per second (`vehicles_for`). Everything about a report is a closed form of vehicle, report
number and seed: readers in different processes make the same records without talking to each other.

How a vehicle drives: it makes one trip after the other, each on some expressway and direction. It enters in lane 0,
goes on in one of the lanes 1-3 at its own cruising speed, and leaves in lane 4. Time is cut into slots of 16 reports
(8 minutes). In each slot some segments are congested: whoever reports from there reports a crawl. In a few there is an
accident: whoever is there as the slot begins stands still for 6 reports, then hurries to be where it would have been
at the slot's end, which keeps its position a closed form. Crawling is a matter of the reported speed only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headgate.errors import BadParameter
from headgate.workloads.columns import record_batch

SCHEMA_DDL = "timestamp timestamp, vehicle int, speed int, highway int, lane int, direction int, segment int"

REPORT_EVERY_S = 30
SEGMENTS = 100
ENTRY_LANE, EXIT_LANE = 0, 4

_SLOT = 16
"""Reports in a time slot."""

_SLOT_SHIFT = 7
"""Reports by which the slots of one road lie before the next one's, lest all accidents happen at once."""

_STAND = 6
"""Reports of a vehicle in an accident: the benchmark calls it stopped after four at the same place."""

_HURRY = _SLOT / (_SLOT - _STAND + 1)
"""Pace after an accident that makes up for the stand by the slot's end."""

_ACCIDENTS_PER_1000, _CONGESTED_PER_1000 = 25, 150
"""Cells (segment, slot) out of a thousand; the congested include those with an accident."""

_SHORTEST_TRIP, _TRIP_CHOICES = 16, 96
"""Reports: the longest trip, at the greatest speed, is 59 of the 100 segments long."""

_SLOWEST_MPH, _MPH_CHOICES, _NOISE_MPH = 45, 20, 4
"""Free traffic stays above the 40 mph of LR2 and, even hurrying, below the benchmark's 100 mph."""

_SLOWEST_CRAWL_MPH, _CRAWL_CHOICES = 5, 31

_SEGMENTS_PER_MPH = REPORT_EVERY_S / 3600
"""Miles, hence segments, between two reports for each mile per hour."""

_SCHEMA = pa.schema(
    [
        # PySpark refuses batches of a Python source whose timestamps are not microseconds in UTC.
        ("timestamp", pa.timestamp("us", tz="UTC")),
        *((name, pa.int32()) for name in ("vehicle", "speed", "highway", "lane", "direction", "segment")),
    ]
)

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Bits = NDArray[np.uint64]


def vehicles_for(mean_rate: float) -> int:
    """How many vehicles make each of them report about every 30 s at `mean_rate` records per second."""
    return max(1, round(REPORT_EVERY_S * mean_rate))


@dataclass(frozen=True, slots=True)
class LinearRoad:
    """The benchmark's input stream, with random access by record number."""

    vehicles: int = 30_000
    expressways: int = 1
    seed: int = 0

    schema_ddl: ClassVar[str] = SCHEMA_DDL

    def __post_init__(self) -> None:
        for name, value, most in (("vehicles", self.vehicles, 2**31 - 1), ("expressways", self.expressways, 1000)):
            if not 1 <= value <= most:
                raise BadParameter(name, value, "is out of range", f"give a number from 1 to {most}")

    def batch(self, first: int, last: int, stamps_s: Floats) -> pa.RecordBatch:
        """The reports first..last-1, which arrived at `stamps_s` (seconds since the epoch)."""
        if len(stamps_s) != last - first:
            raise ValueError(f"{len(stamps_s)} stamps for the reports {first}..{last - 1}")
        report, vehicle = np.divmod(np.arange(first, last, dtype=np.int64), self.vehicles)
        stamps_us = np.rint(np.asarray(stamps_s) * 1e6).astype(np.int64)
        columns = [column.astype(np.int32) for column in self._columns(vehicle, report)]
        return record_batch([stamps_us, *columns], _SCHEMA)

    def _columns(self, vehicle: Ints, report: Ints) -> tuple[Ints, ...]:
        """The columns after the timestamp, in the schema's order."""
        trip = self._trip(vehicle, report)
        slot, tick = np.divmod(report + trip.road * _SLOT_SHIFT, _SLOT)
        stuck = self._stuck(trip, slot, tick)
        stands = stuck & (tick < _STAND)
        segment = trip.segment_at(_legs_driven(trip.leg, tick, stuck))
        pace = np.where(stands, 0.0, np.where(stuck, _HURRY, 1.0))
        crawls = self._chance(trip.road, segment, slot) < _CONGESTED_PER_1000
        speed = self._speed(vehicle, report, pace * trip.mph, crawls)
        lane = self._lane(vehicle, slot, trip)
        return vehicle, speed, trip.road >> 1, lane, trip.road & 1, segment

    def _trip(self, vehicle: Ints, report: Ints) -> _Trip:
        always = _hashed(self.seed, "vehicle", vehicle, np.zeros(1, np.int64))
        reports, mph = _SHORTEST_TRIP + _pick(always, 0, _TRIP_CHOICES), _SLOWEST_MPH + _pick(always, 1, _MPH_CHOICES)
        # Vehicles begin in the middle of a trip, lest all enter at once.
        trip, leg = np.divmod(report + (_share(always, 2) * reports).astype(np.int64), reports)
        this_time = _hashed(self.seed, "trip", vehicle, trip)
        room = SEGMENTS - (reports - 1) * mph * _SEGMENTS_PER_MPH
        road = _pick(this_time, 0, 2 * self.expressways)
        return _Trip(road=road, leg=leg, last_leg=reports - 1, mph=mph, entry=_share(this_time, 1) * room)

    def _stuck(self, trip: _Trip, slot: Ints, tick: Ints) -> Bools:
        """Who was on the road, and at the place of an accident, when the slot began."""
        since = trip.leg - tick
        there = (since > 0) & (since + _STAND <= trip.last_leg)
        place = trip.segment_at(np.maximum(since, 0).astype(np.float64))
        return there & (self._chance(trip.road, place, slot) < _ACCIDENTS_PER_1000)

    def _chance(self, road: Ints, segment: Ints, slot: Ints) -> Ints:
        """A number below 1000 for each cell of the road and the time."""
        return _pick(_hashed(self.seed, "cell", road * SEGMENTS + segment, slot), 0, 1000)

    def _speed(self, vehicle: Ints, report: Ints, mph: Floats, crawls: Bools) -> Ints:
        bits = _hashed(self.seed, "speed", vehicle, report)
        free = np.rint(mph).astype(np.int64) + _pick(bits, 0, 2 * _NOISE_MPH + 1) - _NOISE_MPH
        crawl = _SLOWEST_CRAWL_MPH + _pick(bits, 1, _CRAWL_CHOICES)
        return np.where(mph == 0, 0, np.where(crawls, crawl, free))

    def _lane(self, vehicle: Ints, slot: Ints, trip: _Trip) -> Ints:
        """One lane for a whole slot: a vehicle that stands still does not change it."""
        cruising = ENTRY_LANE + 1 + _pick(_hashed(self.seed, "lane", vehicle, slot), 0, EXIT_LANE - ENTRY_LANE - 1)
        return np.where(trip.leg == 0, ENTRY_LANE, np.where(trip.leg == trip.last_leg, EXIT_LANE, cruising))


@dataclass(frozen=True, slots=True, eq=False)
class _Trip:
    """The trip that each report belongs to; `road` is 2 * highway + direction, `leg` counts its reports from 0."""

    road: Ints
    leg: Ints
    last_leg: Ints
    mph: Ints
    entry: Floats

    def segment_at(self, legs: Floats) -> Ints:
        """Where the vehicle is after so many legs at cruising speed; direction 1 leads from segment 99 to 0."""
        way = (self.entry + legs * self.mph * _SEGMENTS_PER_MPH).astype(np.int64)
        return np.where(self.road & 1, SEGMENTS - 1 - way, way)


def _legs_driven(leg: Ints, tick: Ints, stuck: Bools) -> Floats:
    """Legs since the trip's beginning; those stuck lose the stand and make up for it until the slot ends."""
    hurried = leg - tick + np.maximum(tick - (_STAND - 1), 0) * _HURRY
    return np.where(stuck, hurried, leg)


def _hashed(seed: int, purpose: str, high: Ints, low: Ints) -> Bits:
    """64 well mixed bits for each pair of numbers below 2**31, different for every seed and purpose."""
    salt = int(_splitmix64(np.array([seed % 2**64], np.uint64))[0])
    salted = (salt + int.from_bytes(purpose.encode(), "little")) % 2**64
    return _splitmix64(((high << 32) | low).astype(np.uint64) ^ _splitmix64(np.array([salted], np.uint64)))


def _splitmix64(numbers: Bits) -> Bits:
    """Vigna's SplitMix64 step: fast, and neighbouring numbers give unrelated bits."""
    mixed = numbers + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def _share(bits: Bits, part: int) -> Floats:
    """A number in [0, 1) from the part-th 16 bits."""
    return _sixteen(bits, part).astype(np.float64) / 65536


def _pick(bits: Bits, part: int, choices: int) -> Ints:
    """A whole number below `choices` from the part-th 16 bits."""
    return (_sixteen(bits, part) * choices) >> 16


def _sixteen(bits: Bits, part: int) -> Ints:
    return ((bits >> np.uint64(16 * part)) & np.uint64(0xFFFF)).astype(np.int64)
