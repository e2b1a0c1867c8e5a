"""``headgate explain``: reads the file in which a run recorded its batches; the run may still be going on."""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

from headgate.core.durations import format_duration
from headgate.errors import BadParameter


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("query", nargs="?", help="name of the query; without it, all")
    parser.add_argument("--records", metavar="FILE", help="the run's file (default: the newest run of this user)")
    parser.add_argument("--last", type=int, default=10, metavar="N", help="how many batches (default 10)")
    parser.add_argument("--json", action="store_true", help="as data, one object per line")


def run(parsed: argparse.Namespace) -> int:
    path = Path(parsed.records) if parsed.records else newest_run()
    found = [row for row in read(path) if parsed.query in (None, row["query"])]
    if not found:
        names = sorted({row["query"] for row in read(path)})
        raise BadParameter("query", parsed.query, f"no batches in {path}", f"it has {', '.join(names) or 'none yet'}")
    for row in found[-max(1, parsed.last) :]:
        print(json.dumps(row) if parsed.json else describe(row))
    return 0


def newest_run() -> Path:
    """The file that was written last among this user's runs."""
    from headgate.metrics.runs import runs_folder

    files = sorted(runs_folder().glob("*.jsonl"), key=lambda path: path.stat().st_mtime)
    if not files:
        raise BadParameter("records", str(runs_folder()), "there are no runs yet", "run something first: headgate demo")
    return files[-1]


def read(path: Path) -> list[dict[str, Any]]:
    """All complete lines; the last one may be being written."""
    try:
        lines = path.read_text().splitlines()
    except OSError as error:
        raise BadParameter("records", str(path), f"cannot be read ({error.strerror})", "name a run's .jsonl") from error
    return [json.loads(line) for line in lines if line.endswith("}")]


def describe(row: dict[str, Any]) -> str:
    """A batch in a few lines."""
    clock = time.strftime("%H:%M:%S", time.localtime(row["opened_at_s"])) + f"{row['opened_at_s'] % 1:.3f}"[1:]
    held = ", ".join(
        f"{name.removeprefix('held_').removesuffix('_s')} {format_duration(value)}"
        for name, value in row.items()
        if name.startswith("held_") and name != "held_s" and value > 0
    )
    error = (row["duration_s"] - row["predicted_s"]) / row["duration_s"] if row["duration_s"] else 0.0
    return (
        f"{clock}  {row['query']}  batch {row['batch_id']}  {row['rows']:,} rows  [{row['code']}] {row['reason']}\n"
        f"    held {format_duration(row['held_s'])}{f' ({held})' if held else ''};"
        f" took {format_duration(row['duration_s'])}, predicted {format_duration(row['predicted_s'])} ({error:+.0%})"
        f" beside {row['overlap']:.1f} others\n"
        f"    {_latency(row)}{_tasks(row)}"
    )


def _latency(row: dict[str, Any]) -> str:
    if "latency_max_s" not in row:
        return "latency unknown"
    kind = "estimated latency" if row["estimated"] else "latency"
    text = f"{kind} p50 {format_duration(row['latency_p50_s'])}, max {format_duration(row['latency_max_s'])}"
    if row["deadline_s"] is None:
        return text
    late = row["latency_violations"]
    verdict = "all in time" if not late else f"{late:,} of {row['latency_rows']:,} late"
    return f"{text} of {format_duration(row['deadline_s'])}: {verdict}"


def _tasks(row: dict[str, Any]) -> str:
    """A line of its own about the tasks that read the source, where it is known how long they took."""
    count = row.get("tasks_count")
    if count is None:
        return ""
    slowest, read = format_duration(row["tasks_slowest_s"]), row["tasks_slowest_read"]
    if count == 1:
        return f"\n    one task of {slowest}: {read}"
    median = format_duration(row["tasks_median_s"])
    return f"\n    {count} tasks: slowest {slowest}, median {median} ({row['tasks_ratio']:.1f} x): {read}"
