"""``headgate bench``: figures about Headgate itself, each made by one command."""

from __future__ import annotations

import argparse
import json
import signal
from pathlib import Path
from typing import Any

from headgate.cli import bench_hone, bench_linear_road, bench_state
from headgate.cli.say import say


def arguments(parser: argparse.ArgumentParser) -> None:
    kinds = parser.add_subparsers(dest="kind", metavar="KIND", required=True)
    decisions = kinds.add_parser("decisions", help="how long a decision takes (no Spark)")
    decisions.add_argument("--queries", type=int, default=50, metavar="N")
    overhead = kinds.add_parser("overhead", help="batch time and throughput with and without Headgate, turn by turn")
    overhead.add_argument("--repeats", type=int, default=3, metavar="N")
    overhead.add_argument("--seconds", type=float, default=20.0, metavar="S", help="each turn (default 20)")
    overhead.add_argument("--warm-up", type=float, default=40.0, metavar="S", help="before the first turn (default 40)")
    coordinator = kinds.add_parser("coordinator", help="CPU share of the coordinator with many light queries")
    coordinator.add_argument("--queries", type=int, default=20, metavar="N")
    coordinator.add_argument("--seconds", type=float, default=60.0, metavar="S")
    kafka = kinds.add_parser("kafka", help="the Kafka source against Spark's own, on a broker that Maven fetches")
    kafka.add_argument("--records", type=int, default=5_000_000, metavar="N")
    kafka.add_argument("--bytes", type=int, default=200, metavar="N", help="of each record (default 200)")
    kafka.add_argument("--partitions", type=int, default=4, metavar="N")
    files = kinds.add_parser("files", help="the files source against Spark's own, JSON and Parquet")
    files.add_argument("--rows", type=int, default=2_000_000, metavar="N")
    files.add_argument("--files", type=int, default=16, metavar="N")
    listing = kinds.add_parser("listing", help="how long a look at a folder of many files takes")
    listing.add_argument("--files", type=int, default=100_000, metavar="N")
    rules = kinds.add_parser("rules", help="the load that rules and fixed triggers carry on a simulated machine")
    rules.add_argument("results", metavar="RESULTS", help="of linear-road, whose measured costs are used")
    rules.add_argument("--scenarios", default="mixed-bursty,mixed-u,equal-8-u", metavar="S,…")
    rules.add_argument("--contenders", default="slo-edf,static-0.25-fair,static-0.25-fair-plain", metavar="C,…")
    rules.add_argument("--seeds", type=int, default=12, metavar="N", help="minutes at every load (default 12)")
    for kind in (kafka, files, listing):
        kind.add_argument("--repeats", type=int, default=5, metavar="N")
    for kind in (decisions, overhead, coordinator, kafka, files, listing, rules):
        kind.add_argument("--json", action="store_true", help="as data")
    bench_linear_road.arguments(kinds.add_parser("linear-road", help="Linear Road against stock Spark: the judge"))
    bench_hone.arguments(kinds.add_parser("hone", help="largest backlog first, simulated as in its paper or on Spark"))
    bench_state.arguments(kinds.add_parser("state", help="backups of state in fragments against a single-stream copy"))
    compare = kinds.add_parser("compare", help="two results of linear-road: what became better or worse")
    compare.add_argument("old", metavar="OLD", help="results.json or its folder")
    compare.add_argument("new", metavar="NEW")
    compare.add_argument("--json", action="store_true", help="as data")


def run(parsed: argparse.Namespace) -> int:
    if parsed.kind == "compare":
        return _compare(parsed)
    # A plain `kill` ends a benchmark as Ctrl-C does: with a report of what there is.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    kinds = {
        "decisions": _decisions,
        "overhead": _overhead,
        "coordinator": _coordinator,
        "kafka": _kafka,
        "files": _files,
        "listing": _listing,
        "rules": _rules,
        "linear-road": bench_linear_road.run,
        "hone": bench_hone.run,
        "state": bench_state.run,
    }
    results: Any = kinds[parsed.kind](parsed)
    if parsed.json and results is not None:
        print(json.dumps(results, indent=2))
    return 0


def _decisions(parsed: argparse.Namespace) -> Any:
    from headgate.bench.decisions import all_rules

    results = all_rules(parsed.queries)
    for row in [] if parsed.json else results:
        print(f"{row['rule']:8} {row['queries']} queries: p50 {row['p50_ms']:.3f} ms, p99 {row['p99_ms']:.3f} ms")
    return results


def _overhead(parsed: argparse.Namespace) -> Any:
    from headgate.bench.overhead import compare

    return _told(parsed, compare(parsed.repeats, parsed.seconds, parsed.warm_up, say))


def _coordinator(parsed: argparse.Namespace) -> Any:
    from headgate.bench.overhead import coordinator_load

    result = coordinator_load(parsed.queries, parsed.seconds, say)
    if not parsed.json:
        share, batches = result["coordinator_cpu_share"], result["batches"]
        print(f"{result['queries']} queries, {batches} batches in {result['seconds']:g} s: {share:.2%} of a core")
    return result


def _kafka(parsed: argparse.Namespace) -> Any:
    from headgate.bench.sources import kafka

    return _told(parsed, kafka(parsed.records, parsed.bytes, parsed.partitions, parsed.repeats, say))


def _files(parsed: argparse.Namespace) -> Any:
    from headgate.bench.sources import files

    return _told(parsed, files(parsed.rows, parsed.files, parsed.repeats, say))


def _told(parsed: argparse.Namespace, results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    for row in [] if parsed.json else results:
        spread = f"{min(row['ratios']):.3f} .. {max(row['ratios']):.3f}"
        print(f"{row['what']}: Headgate / {row['peer']} = {row['ratio']:.3f} ({spread})")
    return results


def _listing(parsed: argparse.Namespace) -> Any:
    from headgate.bench.sources import listing

    result = listing(parsed.files, parsed.repeats, say)
    if not parsed.json:
        print(
            f"{result['files']:,} files: first look {result['first_look_s']:.2f} s, then {result['look_s']:.3f} s each"
        )
    return result


def _rules(parsed: argparse.Namespace) -> Any:
    from headgate.bench.linear_road.scenarios import find_contender
    from headgate.bench.linear_road.store import read_results
    from headgate.bench.rules import Costs, capacities

    costs = Costs.of(read_results(Path(parsed.results)))
    contenders = [find_contender(name).name for name in parsed.contenders.split(",")]
    results = capacities(costs, parsed.scenarios.split(","), contenders, parsed.seeds, say)
    for row in [] if parsed.json else results:
        print(f"{row['scenario']:14} {row['contender']:24} {row['capacity']:.3f}")
    return results


def _compare(parsed: argparse.Namespace) -> int:
    """Ends with 1 if Headgate got worse beyond the noise: for regression checks."""
    from dataclasses import asdict

    from headgate.bench.linear_road.compare import compare, regressed, to_text, warnings
    from headgate.bench.linear_road.store import read_results

    old, new = read_results(Path(parsed.old)), read_results(Path(parsed.new))
    rows = compare(old, new)
    for line in warnings(old, new):
        say(f"careful: {line}")
    print(json.dumps([asdict(row) for row in rows], indent=2) if parsed.json else to_text(rows))
    return 1 if regressed(rows) else 0
