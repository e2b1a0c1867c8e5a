"""Arrow columns out of NumPy arrays."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

from headgate.workloads.columns import record_batch

SCHEMA = pa.schema([("at", pa.timestamp("us", tz="UTC")), ("n", pa.int32())])


def test_values_and_types_arrive() -> None:
    made = record_batch([np.array([0, 1_500_000]), np.array([7, -8], np.int32)], SCHEMA)
    made.validate(full=True)
    assert made.schema == SCHEMA
    assert made.column("n").to_pylist() == [7, -8]
    assert made.column("at").cast(pa.int64()).to_pylist() == [0, 1_500_000]


def test_every_second_value_of_an_array_is_no_trouble() -> None:
    made = record_batch([np.arange(6)[::2], np.arange(6, dtype=np.int32)[::-2]], SCHEMA)
    assert made.column("n").to_pylist() == [5, 3, 1]


def test_a_wrong_width_is_refused() -> None:
    with pytest.raises(TypeError, match="int64 does not fit int32"):
        record_batch([np.arange(2), np.arange(2)], SCHEMA)


def test_making_reports_does_not_import_pandas() -> None:
    #  in a Python worker it would take seconds out of the first batch
    script = """
import sys
from headgate.core.traffic import parse_traffic
from headgate.sources.trace import TraceRangeReader, find_workload
for workload in ("linear-road", "counter"):
    traffic = parse_traffic("1000", 1)
    read = TraceRangeReader(traffic, find_workload(workload, 1, traffic, {}))
    assert sum(batch.num_rows for batch in read({"first": 0, "last": 10, "origin_s": 0.0})) == 10
sys.exit("pandas" in sys.modules)
"""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    assert subprocess.run([sys.executable, "-c", script], timeout=60, env=environment).returncode == 0
