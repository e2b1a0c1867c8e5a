"""``headgate defaults``."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="as data")


def run(parsed: argparse.Namespace) -> int:
    from headgate.engine.session import DEFAULTS

    if parsed.json:
        print(json.dumps([asdict(setting) for setting in DEFAULTS], indent=2))
        return 0
    for setting in DEFAULTS:
        print(f"{setting.key} = {setting.value}\n    {setting.reason}")
    return 0
