"""Kafka and the connector for tests: skipped with a reason where they cannot be had, but not where they must run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from headgate.bench.kafka.jars import NoJars, connector_jars, kafka_jars


def jars_or_skip() -> list[Path]:
    """The connector's jars, for ``spark.jars``; Kafka's own are there too then."""
    try:
        kafka_jars()
        return connector_jars()
    except NoJars as error:
        if os.environ.get("HEADGATE_REQUIRE_KAFKA"):
            raise
        pytest.skip(str(error))
