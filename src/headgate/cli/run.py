"""``headgate run SCRIPT.py``: the script as Python would run it, with a live view of every query it starts."""

from __future__ import annotations

import argparse
import json
import runpy
import sys
import time
from pathlib import Path
from typing import Any

from headgate.errors import BadParameter


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("script", help="a Python script that uses headgate.Headgate")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="passed on to the script")
    parser.add_argument("--json", action="store_true", help="no view; print the summaries as JSON at the end")


def run(parsed: argparse.Namespace) -> int:
    if not Path(parsed.script).is_file():
        raise BadParameter("script", parsed.script, "there is no such file", "name a Python script")
    from headgate.cli.live import LiveView
    from headgate.headgate import instances
    from headgate.metrics.status import QueryStatus

    def statuses() -> list[QueryStatus]:
        return [status for hg in list(instances) if not hg.closed for status in hg.status()]

    def headline() -> str:
        return f"headgate run {parsed.script}  {time.strftime('%H:%M:%S')}  (Ctrl-C stops)"

    if parsed.json:
        scripts_own = _run_script(parsed)  # keeps its Headgate alive until the sums are printed
        _finish()
        print(json.dumps(_summaries(), indent=2))
        scripts_own.clear()
        return 0
    with LiveView(statuses, headline):
        _run_script(parsed)
        _finish()
    return 0


def _run_script(parsed: argparse.Namespace) -> dict[str, Any]:
    sys.argv = [parsed.script, *parsed.arguments]
    sys.path.insert(0, str(Path(parsed.script).resolve().parent))
    return runpy.run_path(parsed.script, run_name="__main__")


def _summaries() -> dict[str, Any]:
    from headgate.headgate import instances

    return {name: found.to_json() for hg in list(instances) for name, found in hg.recorder.summaries().items()}


def _finish() -> None:
    """A script that starts queries and ends is meant to let them run: wait for them, then clean up."""
    from headgate.headgate import instances

    try:
        while any(not hg.closed and hg.queries for hg in list(instances)):
            time.sleep(0.5)
    finally:
        for hg in list(instances):
            hg.stop()
