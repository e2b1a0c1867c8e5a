"""``headgate bench linear-road``: which programme to measure, its progress, and what came out."""

from __future__ import annotations

import argparse
import math
import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headgate.errors import BadParameter

if TYPE_CHECKING:
    from headgate.bench.linear_road.programmes import Programme

_ANY_RATE = 1_000.0

PARTS = ("cells", "mixed", "modules", "scaling", "capacity", "saturation")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--quick", action="store_true", help="one repeat of two contenders under mixed deadlines and bursts"
    )
    parser.add_argument("--parts", metavar="P,…", help=f"some of {', '.join(PARTS)} (default all)")
    parser.add_argument(
        "--scenarios", metavar="S,…", help="some scenarios, such as mixed-bursty, equal-8-u or mixed-file:PATH"
    )
    parser.add_argument(
        "--contenders", metavar="C,…", help="some contenders, such as slo-edf,sb-fifo,best-static,static-0.5-fair"
    )
    parser.add_argument(
        "--loads",
        metavar="L,…",
        help="loads instead of the programme's own, such as 0.5,0.8; from 100 on reports per second",
    )
    parser.add_argument("--repeats", type=int, metavar="N", help="fresh applications per contender (default 3)")
    parser.add_argument("--seconds", type=float, metavar="S", help="each measurement (default 60)")
    parser.add_argument(
        "--seed", type=int, default=1, metavar="N", help="of the first repeat's traffic; each has its own (default 1)"
    )
    parser.add_argument(
        "--sweep", metavar="NAME,…", help="stock settings to choose from, such as trigger-0,static-0.25-fair"
    )
    parser.add_argument(
        "--best-static", metavar="[SCENARIO=]NAME,…",
        help="skip the sweep: this setting, such as static-0.25-fair, in this scenario or in all that are not named",
    )  # fmt: skip
    parser.add_argument(
        "--out", default="headgate-bench", metavar="DIR", help="results; an interrupted run goes on there"
    )
    parser.add_argument(
        "--source", choices=["trace", "kafka"], default="trace",
        help="kafka: a real broker in front, which Maven fetches; results need a folder of their own",
    )  # fmt: skip
    parser.add_argument("--plan", action="store_true", help="only say what would be measured and how long it takes")
    parser.add_argument("--json", action="store_true", help="print the results as JSON")


def run(parsed: argparse.Namespace) -> Any:
    from headgate.bench.gauge import Gauge
    from headgate.bench.kafka.broker import source
    from headgate.bench.linear_road.judge import Judge
    from headgate.bench.linear_road.report import write_report
    from headgate.bench.linear_road.store import Store
    from headgate.engine.session import local_cores

    programme = programme_of(parsed, local_cores())
    settings = {
        "repeats": programme.repeats, "measure_s": programme.measure_s, "settle_s": programme.settle_s,
        "seed": programme.seed, "source": parsed.source,
        "parts": list(dict.fromkeys(part.name for part in programme.parts)),
    }  # fmt: skip
    store = Store(Path(parsed.out), command_line(sys.argv), settings)
    if parsed.best_static:
        known = store.data["best_static"]
        wanted = named_settings(parsed.best_static, programme.needs_sweep)
        known |= {scenario: name for scenario, name in wanted.items() if scenario not in known}
    if parsed.plan:
        judge = Judge(programme, store, local_cores(), progress)
        print(f"{', '.join(programme.scenarios)}: about {minutes(judge.remaining_s())}")
        return None
    try:
        with source(parsed.source) as kafka, Gauge() as gauge:
            Judge(programme, store, local_cores(), progress, kafka, gauge).run()
    finally:  # an interrupted run has something to show, too
        report = write_report(store.data, store.path.parent / "report.html")
        print(f"results: {store.path}\nreport:  {report}", file=sys.stderr)
    return store.data


def command_line(words: list[str]) -> str:
    """What measured, without where its results went: that says nothing about them, but much about somebody's disk."""
    told = re.sub(r" --out(=| +)\S+", "", " ".join(words[1:]))
    return f"headgate {told}"


def programme_of(parsed: argparse.Namespace, cores: int) -> Programme:
    """The quick or the full programme, narrowed to what was asked for."""
    from headgate.bench.linear_road.programmes import BEST, full, quick
    from headgate.bench.linear_road.scenarios import find_contender, find_scenario

    programme = quick() if parsed.quick else full(cores)
    if parsed.parts:
        programme = programme.only_parts(chosen("--parts", parsed.parts, PARTS))
    if parsed.scenarios:
        named = [find_scenario(name) for name in parsed.scenarios.split(",")]
        programme = programme.only_scenarios(tuple(scenario.name for scenario in named))
    if parsed.contenders:
        names = parsed.contenders.split(",")
        programme = programme.only_contenders(tuple(n if n == BEST else find_contender(n).name for n in names))
    if programme.empty:
        raise BadParameter(
            "--parts, --scenarios, --contenders",
            ", ".join(filter(None, (parsed.parts, parsed.scenarios, parsed.contenders))),
            "nothing is measured for all of them together",
            "leave one of them out, or see docs/benchmark.md for who takes part in what",
        )
    if parsed.loads:
        loads = tuple(positive("--loads", word) for word in parsed.loads.split(","))
        programme = replace(programme, parts=tuple(replace(part, loads=loads) for part in programme.parts))
    if parsed.sweep:
        programme = replace(programme, sweep=tuple(find_contender(name).name for name in parsed.sweep.split(",")))
    for parameter, value in (("--repeats", parsed.repeats), ("--seconds", parsed.seconds)):
        if value is not None:
            positive(parameter, str(value))
    changes = {"repeats": parsed.repeats, "measure_s": parsed.seconds, "seed": parsed.seed}
    programme = replace(programme, **{key: value for key, value in changes.items() if value is not None})
    for name in programme.scenarios:  # a file that cannot be read is told now, not after a quarter of an hour
        find_scenario(name).queries(_ANY_RATE, programme.window(0))
    return programme


def named_settings(text: str, scenarios: Sequence[str]) -> dict[str, str]:
    """The static setting of each of `scenarios`: its own, or the one that is named without a scenario."""
    from headgate.bench.linear_road.scenarios import find_contender

    words = [word.rpartition("=") for word in text.split(",")]
    named = {scenario: find_contender(name).name for scenario, _, name in words}
    everywhere = named.pop("", None)
    if unknown := [scenario for scenario in named if scenario not in scenarios]:
        remedy = f"use some of {', '.join(scenarios) or 'none: no scenario of this run has a best static setting'}"
        raise BadParameter("--best-static", unknown[0], "is no scenario of this run that needs one", remedy)
    return {scenario: name for scenario in scenarios if (name := named.get(scenario, everywhere))}


def chosen(parameter: str, text: str, known: tuple[str, ...]) -> tuple[str, ...]:
    chosen = tuple(text.split(","))
    for name in chosen:
        if name not in known:
            raise BadParameter(parameter, name, "there is none of this name", f"use some of {', '.join(known)}")
    return chosen


def positive(parameter: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise BadParameter(parameter, text, "is not a number above 0", "give one, such as 1")
    return value


def progress(text: str, took_s: float, left_s: float) -> None:
    print(f"[{minutes(took_s)}, about {minutes(left_s)} left] {text}", file=sys.stderr, flush=True)


def minutes(seconds: float) -> str:
    return f"{seconds / 3600:.1f} h" if seconds >= 5400 else f"{seconds / 60:.0f} min"
