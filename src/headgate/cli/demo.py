"""``headgate demo``: three Linear Road queries with deadlines, beside the same queries on stock Spark."""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headgate.bench.plan import Outcome

QUERIES = (("alerts", 1.5), ("lr2", 6.0), ("lr3", 15.0))
"""Stopped vehicles at once, slow segments soon, counts when there is room."""

RATE_PER_CORE = 2_500
"""Reports per second and core: a load at which the queries get in each other's way but a machine can keep up."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rate", type=int, help=f"reports per second (default {RATE_PER_CORE} per core)")
    parser.add_argument("--warm-up", type=float, default=32.0, metavar="S", help="seconds not counted (default 32)")
    parser.add_argument("--seconds", type=float, default=28.0, metavar="S", help="seconds measured (default 28)")
    parser.add_argument("--source", choices=["trace", "kafka"], default="trace", help="kafka: a real broker in front")
    parser.add_argument("--only", choices=["headgate", "trigger-0", "trigger-deadline"], help="run one contender")
    parser.add_argument("--out", default="headgate-demo", metavar="DIR", help="where picture and figures go")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")


def run(parsed: argparse.Namespace) -> int:
    from headgate.bench.application import Application
    from headgate.bench.jvm import Jvm
    from headgate.bench.kafka.broker import source
    from headgate.bench.plan import HEADGATE, TRIGGER_DEADLINE, TRIGGER_ZERO, BenchQuery, Cell
    from headgate.cli.demo_summary import caption, print_summary
    from headgate.engine.session import local_cores

    rate = parsed.rate or RATE_PER_CORE * local_cores()
    queries = tuple(BenchQuery(name, deadline_s, f"U({rate})") for name, deadline_s in QUERIES)
    contenders = [c for c in (HEADGATE, TRIGGER_ZERO, TRIGGER_DEADLINE) if parsed.only in (None, c.name)]
    begun_s = time.monotonic()
    outcomes = []
    with source(parsed.source) as kafka:
        for number, contender in enumerate(contenders, 1):
            title = f"[{number}/{len(contenders)}] {contender.title}"
            if not parsed.json:
                print(f"{title}: {rate:,} reports/s into each of {', '.join(name for name, _ in QUERIES)}", flush=True)
            with Jvm(show=True, kafka=kafka) as jvm, Application(contender, jvm) as application:
                outcomes.append(application.run(Cell(queries, parsed.warm_up, parsed.seconds, title=f"{title}:")))
    took_s = time.monotonic() - begun_s
    picture = _save(outcomes, Path(parsed.out), caption(rate, parsed.seconds))
    if parsed.json:
        print(json.dumps([asdict(outcome) for outcome in outcomes]))
        return 0
    print_summary(outcomes, parsed.warm_up, parsed.seconds, took_s, picture)
    return 0


def _save(outcomes: list[Outcome], folder: Path, title: str) -> Path:
    from headgate.bench.picture import latency_cdfs

    folder.mkdir(parents=True, exist_ok=True)
    (folder / "outcomes.json").write_text(json.dumps([asdict(outcome) for outcome in outcomes], indent=1))
    return latency_cdfs(outcomes, folder / "latency.png", title)
