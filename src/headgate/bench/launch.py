"""Runs contenders one after another, each in a fresh Python and Spark, so that none inherits another's warm JVM."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from headgate.bench.plan import Outcome, Plan
from headgate.errors import HeadgateError


def launch(plan: Plan) -> Outcome:
    """Run `plan` in a process of its own, on this terminal, and return what it measured."""
    with tempfile.TemporaryDirectory(prefix="headgate-plan-") as folder:
        plan_path, outcome_path = Path(folder) / "plan.json", Path(folder) / "outcome.json"
        plan_path.write_text(json.dumps(plan.to_json()))
        command = [sys.executable, "-m", "headgate.bench.contender", str(plan_path), str(outcome_path)]
        log_path = Path(folder) / "log"
        with log_path.open("w") as log:
            # Spark's own words go to a file; they are shown only if the run fails.
            code = subprocess.run(command, stderr=log, env=os.environ | {"PYTHONWARNINGS": "ignore"}).returncode
        if code != 0 or not outcome_path.exists():
            tail = "\n".join(log_path.read_text().splitlines()[-15:])
            raise HeadgateError(f"the run of {plan.contender.title} ended with code {code}:\n{tail}")
        return Outcome.read(outcome_path)
