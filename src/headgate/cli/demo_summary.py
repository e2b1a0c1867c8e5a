"""The demo's end: a table of promise against reality for each contender."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from headgate.core.durations import format_duration

if TYPE_CHECKING:
    from headgate.bench.plan import Outcome


def caption(rate: int, seconds: float) -> str:
    return f"Latency from arrival to result, {rate:,} reports/s per query, {seconds:.0f} s measured after warm-up"


def print_summary(outcomes: list[Outcome], warm_up_s: float, seconds: float, took_s: float, picture: Path) -> None:
    console = Console()
    console.print()
    console.print(summary_table(outcomes))
    console.print(
        f"Measured for {seconds:.0f} s each after {warm_up_s:.0f} s of warm-up that is not counted (a JVM goes on "
        "getting faster for minutes; longer runs: --warm-up 120 --seconds 120). One run each: machines are noisy, "
        f"repeat before you believe a small difference. Took {took_s / 60:.1f} min.",
        style="dim",
        highlight=False,
    )
    console.print(f"Picture: {picture}", highlight=False, soft_wrap=True)
    console.print("Why each batch started when it did: headgate explain alerts", highlight=False)


def summary_table(outcomes: list[Outcome]) -> Table:
    table = Table(title="Promise against reality", title_justify="left")
    for heading in ("", "query", "deadline", "late", "p50", "p99", "max", "batches", "CPU s"):
        table.add_column(heading, justify="left" if heading in ("", "query") else "right")
    for outcome in outcomes:
        for index, (name, found) in enumerate(outcome.queries.items()):
            late = f"{found['violation_rate']:.2%}"
            table.add_row(
                outcome.title if index == 0 else "",
                name,
                f"{found['deadline_s']:g} s",
                f"[green]{late}[/]" if found["keeps_promise"] else f"[bold red]{late}[/]",
                *(format_duration(found[key]) for key in ("p50_s", "p99_s", "max_s")),
                str(found["batches"]),
                f"{outcome.cpu_s:.0f}" if index == 0 else "",
                end_section=index == len(outcome.queries) - 1,
            )
    return table
