"""``headgate bench hone``: largest backlog first, simulated as in its paper, or with ``--spark`` on a real Spark."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headgate.cli.bench_linear_road import chosen, command_line, minutes, positive, progress
from headgate.cli.say import say

if TYPE_CHECKING:
    from headgate.bench.hone.programme import Programme
    from headgate.bench.report.target import Target

SIMULATED = "results.json"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seeds", type=int, default=50, metavar="N", help="simulated runs of a setting (default 50)")
    parser.add_argument("--out", default="headgate-hone", metavar="DIR", help="where results and report go")
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    parser.add_argument(
        "--spark", action="store_true",
        help="WordCount on Spark and a Kafka broker, which Maven fetches; an interrupted run goes on in DIR",
    )  # fmt: skip
    spark = parser.add_argument_group("with --spark")
    spark.add_argument("--quick", action="store_true", help="one repeat of three contenders at one rate")
    spark.add_argument("--skews", metavar="S,…", help="some of even, catch-up, bursts, hot (default all)")
    spark.add_argument("--loads", metavar="L,…", help="shares of what the batch room takes (default 0.85,0.95,1.05)")
    spark.add_argument("--contenders", metavar="C,…", help="some of lbf, oldest, proportional, round-robin, spark")
    spark.add_argument("--no-variants", action="store_true", help="without other groupings and lengths of sentences")
    spark.add_argument("--repeats", type=int, metavar="N", help="runs of every setting (default 3)")
    spark.add_argument("--seconds", type=float, metavar="S", help="each measurement (default 40)")
    spark.add_argument("--seed", type=int, default=1, metavar="N", help="of the traffic (default 1)")
    spark.add_argument("--plan", action="store_true", help="only say what would be measured and how long it takes")


def run(parsed: argparse.Namespace) -> Any:
    folder = Path(parsed.out)
    results = _on_spark(parsed, folder) if parsed.spark else _simulated(parsed, folder)
    if results is not None:
        print(f"report: {_report(folder)}", file=sys.stderr)
    return results


def _simulated(parsed: argparse.Namespace, folder: Path) -> Any:
    from headgate.bench.hone.report import targets
    from headgate.bench.hone.study import study

    results = study(parsed.seeds, say)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / SIMULATED).write_text(json.dumps(results))
    _tell(parsed, targets(results))
    return results


def _on_spark(parsed: argparse.Namespace, folder: Path) -> Any:
    from headgate.bench.hone.experiment import Experiment
    from headgate.bench.hone.spark_targets import targets

    experiment = Experiment(programme_of(parsed), folder, command_line(sys.argv), progress)
    if parsed.plan:
        for setting in experiment.programme.settings():
            print(setting.title)
        print(f"each with {', '.join(experiment.programme.contenders)}: about {minutes(experiment.remaining_s())}")
        return None
    results = experiment.run()
    _tell(parsed, targets(results))
    return results


def programme_of(parsed: argparse.Namespace) -> Programme:
    """The quick or the full programme, narrowed to what was asked for."""
    from headgate.bench.hone.programme import CONTENDERS, QUICK, Programme
    from headgate.bench.hone.skew import TITLES

    programme = QUICK if parsed.quick else Programme()
    changes: dict[str, Any] = {"seed": parsed.seed}
    if parsed.skews:
        changes["skews"] = chosen("--skews", parsed.skews, tuple(TITLES))
    if parsed.contenders:
        changes["contenders"] = chosen("--contenders", parsed.contenders, tuple(CONTENDERS))
    if parsed.loads:
        changes["loads"] = tuple(positive("--loads", word) for word in parsed.loads.split(","))
    if parsed.no_variants:
        changes["varied"] = ()
    if parsed.repeats is not None:
        changes["repeats"] = int(positive("--repeats", str(parsed.repeats)))
    if parsed.seconds is not None:
        changes["measure_s"] = positive("--seconds", str(parsed.seconds))
    return replace(programme, **changes)


def _report(folder: Path) -> Path:
    """Of what the folder holds, the simulation or the testbed or both."""
    from headgate.bench.hone.experiment import FILE
    from headgate.bench.hone.report import write_report

    simulated, on_spark = (
        json.loads((folder / name).read_text()) if (folder / name).exists() else None for name in (SIMULATED, FILE)
    )
    return write_report(simulated, folder / "report.html", on_spark)


def _tell(parsed: argparse.Namespace, rows: list[Target]) -> None:
    from headgate.bench.report.targets_table import found, required

    for row in [] if parsed.json else rows:
        print(f"{row.measure}: {found(row)} ({required(row)}, {row.verdict})")
