"""The deciding part never imports Spark; the command line answers without it."""

from __future__ import annotations

import pkgutil
import subprocess
import sys

import headgate.core


def _imported_by(statement: str) -> set[str]:
    code = f"{statement}\nimport sys; print(*sorted(m.split('.')[0] for m in sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONPATH": ":".join(sys.path)}
    )
    return set(done.stdout.split())


def test_core_does_not_import_spark() -> None:
    modules = [module.name for module in pkgutil.walk_packages(headgate.core.__path__, "headgate.core.")]
    assert "headgate.core.dispatcher" in modules
    assert _imported_by("import " + ", ".join(modules)).isdisjoint({"pyspark", "py4j"})


def test_the_way_in_is_light() -> None:
    heavy = {"pyspark", "py4j", "pyarrow", "numpy", "pandas", "matplotlib", "rich"}
    assert _imported_by("import headgate, headgate.cli.main; headgate.cli.main.parser()").isdisjoint(heavy)
