"""The Kafka node that tests, demos and benchmarks start."""

from __future__ import annotations

import base64
import uuid
from pathlib import Path

import pytest

from headgate.bench.kafka.broker import LocalBroker


def test_a_cluster_may_have_any_name(jars: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Random names are base64: one in 64 begins with "-", as an option does."""
    name = uuid.UUID(bytes=b"\xf8" + bytes(range(1, 16)))
    assert base64.urlsafe_b64encode(name.bytes).startswith(b"-")
    monkeypatch.setattr(uuid, "uuid4", lambda: name)
    with LocalBroker(tmp_path / "kafka"):
        kept = (tmp_path / "kafka/data/meta.properties").read_text()
    assert f"cluster.id={base64.urlsafe_b64encode(name.bytes).decode().rstrip('=')}" in kept
