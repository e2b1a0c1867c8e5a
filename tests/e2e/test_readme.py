"""The README's first example is run as it stands, but for its end."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.e2e

README = Path(__file__).parents[2] / "README.md"


def example() -> str:
    found = re.search(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    assert found is not None
    return found[1]


def test_the_first_example_is_short() -> None:
    assert len([line for line in example().splitlines() if line.strip()]) < 15


def test_the_first_example_runs(tmp_path: Path) -> None:
    script = tmp_path / "example.py"
    script.write_text(example().replace("awaitTermination()", "awaitTermination(25)"))
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=240, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.count("Batch: ") >= 4
    assert "|window" in done.stdout.replace(" ", "") and "|timestamp" in done.stdout.replace(" ", "")
