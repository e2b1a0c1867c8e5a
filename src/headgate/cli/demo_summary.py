"""The demo's end: a table of promise against reality for each contender."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from headgate.core.durations import format_duration

if TYPE_CHECKING:
    from headgate.bench.plan import Outcome


def caption(rate: int, seconds: float) -> str:
    return f"Latency from arrival to result, {rate:,} reports/s per query, {seconds:.0f} s measured after warm-up"


def print_summary(outcomes: list[Outcome], warm_up_s: float, seconds: float, took_s: float, picture: Path) -> None:
    console = Console()
    console.print("\n[bold underline]Promise against reality[/]")
    for outcome in outcomes:
        print_outcome(console, outcome)
    console.print(
        f"Measured for {seconds:.0f} s each after {warm_up_s:.0f} s of warm-up that is not counted (a JVM goes on "
        "getting faster for minutes; longer runs: --warm-up 120 --seconds 120). One run each: machines are noisy, "
        f"repeat before you believe a small difference. Took {took_s / 60:.1f} min.",
        style="dim",
        highlight=False,
    )
    console.print(f"Picture: {picture}", highlight=False, soft_wrap=True)
    console.print("Why each batch started when it did: headgate explain alerts", highlight=False)


def print_outcome(console: Console, outcome: Outcome) -> None:
    console.print(
        f"[bold]{outcome.title}[/]: {outcome.cpu_s:.0f} CPU seconds in {outcome.measured_s:.0f} s", highlight=False
    )
    table = Table(box=None, pad_edge=False)
    for heading in ("  query", "deadline", "late", "p50", "p99", "max", "batches"):
        table.add_column(heading, justify="left" if "query" in heading else "right", no_wrap=True, min_width=8)
    for name, found in outcome.queries.items():
        table.add_row(*_cells(name, found))
    console.print(table)


def _cells(name: str, found: dict[str, Any]) -> list[str]:
    late = f"{found['violation_rate']:.2%}"
    return [
        f"  {name}",
        f"{found['deadline_s']:g} s",
        f"[green]{late}[/]" if found["keeps_promise"] else f"[bold red]{late}[/]",
        *("-" if found[key] is None else format_duration(found[key]) for key in ("p50_s", "p99_s", "max_s")),
        str(found["batches"]),
    ]
