"""The results on disk: written after every run, so that a benchmark that was interrupted goes on where it stopped."""

from __future__ import annotations

import json
import os
import platform
import sys
import time
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from headgate._version import __version__
from headgate.bench.linear_road.lookup import commands
from headgate.bench.linear_road.scenarios import find_contender, find_scenario
from headgate.bench.plan import Measured
from headgate.engine.session import local_cores
from headgate.errors import BadParameter

FORMAT = 1
FILE = "results.json"


class Store:
    """``results.json`` in a folder."""

    def __init__(self, folder: Path, command: str, settings: dict[str, Any]) -> None:
        self.path = folder / FILE
        folder.mkdir(parents=True, exist_ok=True)
        self.data: dict[str, Any] = _read(self.path) if self.path.exists() else _fresh(command, settings)
        self._check(settings)
        if command and command not in (known := commands(self.data)):
            self.data["command"] = "\n".join([*known, command])
        self._opened_s = time.monotonic()
        self._took_before_s = float(self.data["took_s"])

    def _check(self, settings: dict[str, Any]) -> None:
        refuse_mixture(self.path.parent, _measured_alike(self.data), _measured_alike(_fresh("", settings)))
        self.data["settings"] |= _widened(self.data["settings"], settings)

    def has(self, part: str, scenario: str, contender: str, load: float, repeat: int, cores: int) -> bool:
        wanted = (part, scenario, contender, round(load, 4), repeat, cores)
        return any(_key(run) == wanted for run in self.data["runs"])

    def add(self, part: str, scenario: str, load: float, measured: Measured, repeat: int, cores: int) -> None:
        """Keep one run; `load` is the one that was asked for."""
        found = measured.found
        run = asdict(found) | {"part": part, "scenario": scenario, "load": load, "repeat": repeat}
        run |= {"rate": measured.rate, "load_met": measured.load}
        del run["title"]
        for query in run["queries"].values():
            query.pop("batch_times", None)
        self.data["runs"].append(run | {"cores": cores, "rows": found.rows})
        self._name(found.contender, scenario)
        self.save()

    def capacity(self, scenario: str, contender: str, repeat: int) -> dict[str, Any] | None:
        """A search that was finished."""
        return self._find("capacity", scenario=scenario, contender=contender, repeat=repeat)

    def saturation(self, contender: str, repeat: int) -> dict[str, Any] | None:
        return self._find("saturation", contender=contender, repeat=repeat)

    def open_search(self, what: str, scenario: str, contender: str, repeat: int) -> list[dict[str, Any]]:
        """The probes so far of the search that is going on, to be added to; a new list for another search."""
        search = {"what": what, "scenario": scenario, "contender": contender, "repeat": repeat}
        known = self.data.get("open_search") or {}
        if any(known.get(key) != value for key, value in search.items()):
            known = self.data["open_search"] = search | {"probes": []}
        probes: list[dict[str, Any]] = known["probes"]
        return probes

    def append(self, kind: str, entry: dict[str, Any]) -> None:
        """Keep a capacity, a setting of the sweep or a saturation; a search that it ends is over."""
        self.data.pop("open_search", None)
        self.data[kind].append(entry)
        if "contender" in entry:
            self._name(entry["contender"], entry.get("scenario"))
        self.save()

    def save(self) -> None:
        """A reader finds the old file or the new one, never half of it."""
        self.data["took_s"] = self._took_before_s + time.monotonic() - self._opened_s
        part = self.path.with_suffix(".part")
        part.write_text(json.dumps(self.data))
        os.replace(part, self.path)

    def _find(self, kind: str, **wanted: Any) -> dict[str, Any] | None:
        entries = self.data[kind]
        return next((e for e in entries if all(e[key] == value for key, value in wanted.items())), None)

    def _name(self, contender: str, scenario: str | None) -> None:
        known = find_contender(contender)
        kind = "stock" if known.stock else "headgate"
        self.data["contenders"][contender] = {"title": known.title, "kind": kind}
        if scenario is not None:
            about = find_scenario(scenario)
            self.data["scenarios"][scenario] = {
                "title": about.title, "traffic": about.traffic, "deadlines": about.deadlines_s,
            }  # fmt: skip


def refuse_mixture(folder: Path, began: dict[str, Any], here: dict[str, Any]) -> None:
    """A run that goes on must measure the same way as it began; what it measures may be widened."""
    different = [f"{name} {began.get(name)} (now {value})" for name, value in here.items() if began.get(name) != value]
    if different:
        raise BadParameter(
            "--out", str(folder), f"it holds results with {', '.join(different)}",
            "name another folder, or go on with the same settings, versions and machine",
        )  # fmt: skip


def _widened(before: dict[str, Any], now: dict[str, Any]) -> dict[str, Any]:
    """Settings that tell of all runs of a folder, also of those before a narrower command."""
    repeats = max(before.get("repeats", 0), now["repeats"])
    return now | {"repeats": repeats, "parts": list(dict.fromkeys([*before.get("parts", []), *now.get("parts", [])]))}


def _measured_alike(data: dict[str, Any]) -> dict[str, Any]:
    """What all runs of a folder must have in common, or their figures say nothing about each other."""
    settings = {"source": "trace"} | data["settings"]
    return {
        **{name: data.get(name) for name in ("headgate", "spark")},
        **{name: (data.get("machine") or {}).get(name) for name in ("cores", "cpu")},
        **{name: settings.get(name) for name in ("measure_s", "settle_s", "seed", "source")},
    }


def _key(run: dict[str, Any]) -> tuple[Any, ...]:
    return run["part"], run["scenario"], run["contender"], round(run["load"], 4), run["repeat"], run["cores"]


def _fresh(command: str, settings: dict[str, Any]) -> dict[str, Any]:
    import pyspark

    return {
        "format": FORMAT, "headgate": __version__, "spark": pyspark.__version__, "machine": machine(),
        "command": command, "began": datetime.now(UTC).isoformat(timespec="seconds"), "took_s": 0.0,
        "settings": dict(settings), "calibration": None, "best_static": {}, "contenders": {}, "scenarios": {},
        "runs": [], "capacity": [], "saturation": [], "limit": [], "sweep": [],
    }  # fmt: skip


def _read(path: Path) -> dict[str, Any]:
    try:
        data: dict[str, Any] = json.loads(path.read_text())
    except ValueError as error:
        raise BadParameter(
            "results", str(path), f"is not JSON ({error})", "name a file that a benchmark wrote"
        ) from error
    if data.get("format") != FORMAT:
        raise BadParameter("results", str(path), f"has format {data.get('format')}", f"only format {FORMAT} is known")
    return data


def read_results(path: Path) -> dict[str, Any]:
    """Results by their file or the folder that holds it."""
    file = path / FILE if path.is_dir() else path
    if not file.exists():
        raise BadParameter("results", str(path), "there is no such file", "name a results.json or its folder")
    return _read(file)


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    return {
        "cores": local_cores(),
        "cpu": _cpu_name(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "python": sys.version.split()[0],
        "system": f"{platform.system()} {platform.machine()}",
    }


def _cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or "unknown"
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")
