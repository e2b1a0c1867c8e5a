"""Jars by name through Maven, kept in the user's cache folder: Kafka's broker and Spark's Kafka connector."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from headgate.errors import HeadgateError

KAFKA = "org.apache.kafka:kafka_2.13:4.1.1"

CONNECTOR = (
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
    "org.apache.kafka:kafka-clients:3.9.2",
    "org.apache.commons:commons-pool2:2.13.1",
)
"""Spark's own Kafka source with just what Spark itself has not got: the newest that Maven Central has, where parts of
different Sparks are published at different times. These work with Spark 4.3; a test makes sure."""

TIMEOUT_S = 600.0

_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>headgate</groupId><artifactId>jars</artifactId><version>1</version>
  <dependencies>{dependencies}</dependencies>
</project>
"""

_DEPENDENCY = "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>{}</dependency>"

_ALONE = "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"
"""Without what it depends on: a library may name other repositories for that, which Maven would go to."""


class NoJars(HeadgateError, RuntimeError):
    """They cannot be had here: no Maven, or it reaches nothing."""


def kafka_jars() -> Path:
    """The folder with the broker and all it needs."""
    return _fetch([KAFKA], "")


def connector_jars() -> list[Path]:
    """Spark's own Kafka source, for ``spark.jars``."""
    return sorted(_fetch(CONNECTOR, _ALONE).glob("*.jar"))


def _fetch(coordinates: Sequence[str], extra: str) -> Path:
    """The folder with these libraries, named by the first; downloaded once."""
    _, artifact, version = coordinates[0].split(":")
    folder = cache_folder() / f"{artifact}-{version}"
    if not folder.is_dir():
        named = (_DEPENDENCY.format(*each.split(":"), extra) for each in coordinates)
        _download(_POM.format(dependencies="".join(named)), folder)
    return folder


def cache_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "headgate" / "jars"


def _download(pom: str, folder: Path) -> None:
    """Into a folder beside it first: one that is there is whole."""
    maven = shutil.which("mvn")
    if maven is None:
        raise NoJars("Maven (mvn) is not on PATH; install it, for example: apt-get install maven")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, ignore_cleanup_errors=True) as made:
        (Path(made) / "pom.xml").write_text(pom)
        command = [
            maven, "--batch-mode", "--quiet", "-f", f"{made}/pom.xml", "dependency:copy-dependencies",
            "-DincludeScope=runtime", f"-DoutputDirectory={made}/jars",
        ]  # fmt: skip
        try:
            subprocess.run(command, check=True, capture_output=True, text=True, timeout=TIMEOUT_S)
        except subprocess.CalledProcessError as error:
            raise NoJars(f"Maven could not fetch {folder.name}: {_last_line(error.stdout or error.stderr)}") from error
        except subprocess.TimeoutExpired as error:
            raise NoJars(f"Maven has not fetched {folder.name} within {TIMEOUT_S:.0f} s") from error
        if not folder.is_dir():  # another process may have been quicker
            os.rename(f"{made}/jars", folder)


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[0] if lines else "it said nothing"
