"""Spark's progress events, reduced to what the dispatcher needs."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from headgate.core.dispatcher import Progress


def parse_progress(event: dict[str, Any]) -> Progress | None:
    """A finished batch, or None for events without one (no name, no trigger)."""
    name, timestamp = event.get("name"), event.get("timestamp")
    durations = event.get("durationMs") or {}
    if not name or not timestamp or "triggerExecution" not in durations:
        return None
    started_at_s = datetime.fromisoformat(timestamp).timestamp()
    return Progress(
        query=str(name),
        batch_id=int(event.get("batchId", -1)),
        started_at_s=started_at_s,
        finished_at_s=started_at_s + durations["triggerExecution"] / 1e3,
        rows=int(
            event.get("numInputRows") or sum(source.get("numInputRows", 0) for source in event.get("sources", []))
        ),
        spark_ms={key: int(value) for key, value in durations.items()},
        behind=any(_behind(source) for source in event.get("sources", [])),
    )


def _behind(source: dict[str, Any]) -> bool:
    """Whether a source had more than the batch took (``maxOffsetsPerTrigger`` and the like), as far as it tells."""
    return source.get("latestOffset") not in (None, source.get("endOffset"))
