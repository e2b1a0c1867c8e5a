"""The programme of the testbed, run by run: calibrated first, forecast before it is measured, kept after every run."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from headgate._version import __version__
from headgate.bench.hone.calibration import BatchCost, Room, room
from headgate.bench.hone.forecast import RULES, forecast
from headgate.bench.hone.programme import TAIL_S, Contender, Programme, Setting
from headgate.bench.hone.skew import Traffic
from headgate.bench.hone.testbed import Testbed, opened
from headgate.bench.linear_road.store import machine, refuse_mixture
from headgate.errors import BadParameter

FILE = "spark.json"
FORMAT = 1

AROUND_S = 20.0
"""What a run takes besides the measured time: a query's start, the last records, reading the timestamps."""

CALIBRATION_S = 120.0

Progress = Callable[[str, float, float], None]
"""(what, seconds since the beginning, seconds left)."""


class Experiment:
    """What of a programme has not been measured yet; results are in `folder` after every run."""

    def __init__(self, programme: Programme, folder: Path, command: str, progress: Progress) -> None:
        self.programme = programme
        self.path = folder / FILE
        self.data = read(self.path) if self.path.exists() else _fresh(command, programme)
        _check(self.data, programme, folder)
        self._progress = progress
        self._begun_s = time.monotonic()
        self._took_before_s = float(self.data["took_s"])

    def run(self) -> dict[str, Any]:
        if self._left():
            with opened() as testbed:
                self._warm_up(testbed)
                for setting in self.programme.settings():
                    self._prepare(testbed, setting)
                for repeat, setting, contender in self._left():
                    self._measure(testbed, repeat, setting, contender)
        return self.data

    def remaining_s(self) -> float:
        """From what runs have taken so far, or else from the programme."""
        known = [run["took_s"] for run in self.data["runs"][-10:]]
        run_s = sum(known) / len(known) if known else self._seconds() - TAIL_S + AROUND_S
        workloads = {setting.workload.name for setting in self.programme.settings()}
        return len(self._left()) * run_s + len(workloads - set(self.data["calibration"])) * CALIBRATION_S

    def _left(self) -> list[tuple[int, Setting, Contender]]:
        done = {_key(run) for run in self.data["runs"]}
        return [each for each in self.programme.runs() if (each[0], *_names(each[1]), each[2].name) not in done]

    def _warm_up(self, testbed: Testbed) -> None:
        """A calibration makes the JVM warm; one that was done before an interruption has to be done again for that."""
        first = self.programme.settings()[0].workload
        if first.name in self.data["calibration"]:
            self._say("warming up")
            testbed.costs(first, self._say)

    def _prepare(self, testbed: Testbed, setting: Setting) -> None:
        """Batch room and forecast, before anything is measured."""
        name = setting.workload.name
        if name not in self.data["calibration"]:
            costs = testbed.costs(setting.workload, self._say)
            found = room(list(costs.values()))
            self.data["calibration"][name] = asdict(found) | {"costs": {key: asdict(costs[key]) for key in costs}}
            self._save()
            self._say(f"{name}: {found.rows:,} records every {found.trigger_s:g} s, {found.capacity:,.0f} records/s")
        if not any(_names(setting) == _where(each) for each in self.data["forecast"]):
            self._say(f"forecast for {setting.title}")
            self.data["forecast"] += [self._forecast(setting, rule) for rule in RULES]
            self._save()

    def _forecast(self, setting: Setting, rule: str) -> dict[str, Any]:
        given, p = self._room(setting), self.programme
        cost = max(BatchCost(**each).of(given.rows) for each in self._calibration(setting)["costs"].values())
        stamps_s = self._traffic(setting, 0).stamps_s()
        found = forecast(stamps_s, rule, given.rows, given.trigger_s, cost, p.settle_s, p.settle_s + p.measure_s)
        return rounded(_description(setting) | {"contender": rule} | found)

    def _measure(self, testbed: Testbed, repeat: int, setting: Setting, contender: Contender) -> None:
        begun_s, given, traffic = time.monotonic(), self._room(setting), self._traffic(setting, repeat)
        self._say(f"repeat {repeat + 1} of {self.programme.repeats}: {setting.title}, {contender.title}")
        found = testbed.run(contender, setting.workload, given, traffic, self.programme.measure_s)
        about = {"repeat": repeat, "contender": contender.name, "rate": traffic.rate, "seed": traffic.seed}
        took = {"took_s": time.monotonic() - begun_s}
        self.data["runs"].append(rounded(_description(setting) | about | found | took))
        self._save()

    def _traffic(self, setting: Setting, repeat: int) -> Traffic:
        """The same for all contenders of a repeat."""
        rate, words = setting.load * self._room(setting).capacity, setting.workload.max_words
        return Traffic(
            setting.skew, rate, self.programme.seed + repeat, self.programme.settle_s, self._seconds(), words
        )

    def _seconds(self) -> float:
        return self.programme.settle_s + self.programme.measure_s + TAIL_S

    def _calibration(self, setting: Setting) -> dict[str, Any]:
        found: dict[str, Any] = self.data["calibration"][setting.workload.name]
        return found

    def _room(self, setting: Setting) -> Room:
        found = self._calibration(setting)
        return Room(found["trigger_s"], found["rows"])

    def _say(self, text: str) -> None:
        self._progress(text, time.monotonic() - self._begun_s, self.remaining_s())

    def _save(self) -> None:
        """A reader finds the old file or the new one, never half of it."""
        self.data["took_s"] = self._took_before_s + time.monotonic() - self._begun_s
        self.path.parent.mkdir(parents=True, exist_ok=True)
        part = self.path.with_suffix(".part")
        part.write_text(json.dumps(self.data))
        os.replace(part, self.path)


def read(path: Path) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(path.read_text())
    if data.get("format") != FORMAT:
        raise BadParameter("--out", str(path), f"has format {data.get('format')}", f"only format {FORMAT} is known")
    return data


def _fresh(command: str, programme: Programme) -> dict[str, Any]:
    return {
        "format": FORMAT, "command": command, "began": datetime.now(UTC).isoformat(timespec="seconds"), "took_s": 0.0,
        **_measured_alike(programme), "calibration": {}, "forecast": [], "runs": [],
    }  # fmt: skip


def _measured_alike(programme: Programme) -> dict[str, Any]:
    """What all runs of a folder must have in common, or their figures say nothing about each other."""
    import pyspark

    settings = {"measure_s": programme.measure_s, "settle_s": programme.settle_s, "seed": programme.seed}
    return {"headgate": __version__, "spark": pyspark.__version__, "machine": machine(), "settings": settings}


def _check(data: dict[str, Any], programme: Programme, folder: Path) -> None:
    refuse_mixture(folder, _flat(data), _flat(_measured_alike(programme)))


def _flat(data: dict[str, Any]) -> dict[str, Any]:
    """One level, so that a difference can be told by its name."""
    grouped = {f"{group} {name}": value for group in ("machine", "settings") for name, value in data[group].items()}
    return {"headgate": data["headgate"], "spark": data["spark"], **grouped}


def _description(setting: Setting) -> dict[str, Any]:
    grouping, words = setting.workload.grouping, setting.workload.max_words
    return {"workload": setting.workload.name, "grouping": grouping, "max_words": words} | {
        "skew": setting.skew, "load": setting.load,
    }  # fmt: skip


def _names(setting: Setting) -> tuple[str, str, float]:
    return setting.workload.name, setting.skew, setting.load


def _where(entry: dict[str, Any]) -> tuple[str, str, float]:
    return entry["workload"], entry["skew"], entry["load"]


def _key(run: dict[str, Any]) -> tuple[int, str, str, float, str]:
    return run["repeat"], *_where(run), run["contender"]


def rounded(values: dict[str, Any]) -> dict[str, Any]:
    """Tenths of a millisecond are finer than anything here."""
    return {key: _rounded(value) for key, value in values.items()}


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return rounded(value)
    if isinstance(value, list):
        return [_rounded(each) for each in value]
    return round(value, 4) if isinstance(value, float) else value
