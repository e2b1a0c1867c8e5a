"""``headgate bench state``: what backups of state cost and bring."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from headgate.cli.say import say


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", default="headgate-state", metavar="DIR", help="where results and report go")
    parser.add_argument("--quick", action="store_true", help="few sizes, two repeats: half a minute")
    parser.add_argument("--repeats", type=int, metavar="N", help="of every figure (default 5)")
    parser.add_argument("--bandwidth", type=float, default=50.0, metavar="MB/S", help="of every place (default 50)")
    parser.add_argument(
        "--spark", metavar="QUERY", choices=("join", "aggregate"),
        help="instead a running query with 200 MB of state, join or aggregate; 17 minutes each",
    )  # fmt: skip
    parser.add_argument("--groups", type=int, default=3, metavar="N", help="with --spark: of four phases (default 3)")
    parser.add_argument("--seconds", type=float, default=65.0, metavar="S", help="with --spark: a phase (default 65)")
    parser.add_argument("--every", default="30s", metavar="DURATION", help="with --spark: a backup (default 30s)")
    parser.add_argument("--pace", type=float, default=0.0, metavar="S", help="with --spark: a batch (default: at once)")
    parser.add_argument("--json", action="store_true", help="print the results as JSON")


def run(parsed: argparse.Namespace) -> Any:
    from headgate.bench.report.targets_table import found, required
    from headgate.bench.state.report import targets, write_report

    folder = Path(parsed.out)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "results.json"
    results = json.loads(path.read_text()) if path.exists() else {}
    results |= {_name(parsed): _on_spark(parsed)} if parsed.spark else _study(parsed)
    path.write_text(json.dumps(results))
    for target in [] if parsed.json else targets(results):
        print(f"{target.measure}: {found(target)} (required {required(target)}): {target.verdict}")
    say(f"report: {write_report(results, folder / 'report.html')}")
    return results


def _study(parsed: argparse.Namespace) -> dict[str, Any]:
    from dataclasses import replace

    from headgate.bench.state.programme import QUICK, Programme
    from headgate.bench.state.study import study

    programme = replace(QUICK if parsed.quick else Programme(), bandwidth_mb_s=parsed.bandwidth)
    return study(replace(programme, repeats=parsed.repeats or programme.repeats), say)


def _on_spark(parsed: argparse.Namespace) -> dict[str, Any]:
    from headgate.bench.state.on_spark import on_spark

    return on_spark(parsed.spark, parsed.groups, parsed.seconds, parsed.every, parsed.pace, say)


def _name(parsed: argparse.Namespace) -> str:
    return f"{parsed.spark}-paced" if parsed.pace else str(parsed.spark)
