"""The cluster that librdkafka has inside for its own tests: real requests and answers, no Kafka, in milliseconds.

Python's package does not show it, so its library is called directly. It has no controller, so that topics cannot be
described; offsets and lists of topics can be asked for.
"""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest

NOBODY = -1
_SIGNATURES = {
    "rd_kafka_conf_new": (ctypes.c_void_p, []),
    "rd_kafka_new": (ctypes.c_void_p, [ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t]),
    "rd_kafka_destroy": (None, [ctypes.c_void_p]),
    "rd_kafka_mock_cluster_new": (ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_int]),
    "rd_kafka_mock_cluster_destroy": (None, [ctypes.c_void_p]),
    "rd_kafka_mock_cluster_bootstraps": (ctypes.c_char_p, [ctypes.c_void_p]),
    "rd_kafka_mock_topic_create": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_int]),
    "rd_kafka_mock_partition_set_leader": (
        ctypes.c_int, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int32, ctypes.c_int32],
    ),
}  # fmt: skip


class MockCluster:
    """Brokers numbered from 1."""

    def __init__(self, brokers: int = 2) -> None:
        self._library = _library()
        self._client = self._library.rd_kafka_new(0, self._library.rd_kafka_conf_new(), None, 0)
        self._cluster = self._library.rd_kafka_mock_cluster_new(self._client, brokers)
        self.address = self._library.rd_kafka_mock_cluster_bootstraps(self._cluster).decode()

    def create(self, topic: str, partitions: int = 1) -> None:
        assert self._library.rd_kafka_mock_topic_create(self._cluster, topic.encode(), partitions, 1) == 0

    def lead(self, topic: str, partition: int, broker: int) -> None:
        """Make a broker the leader, or nobody."""
        self._library.rd_kafka_mock_partition_set_leader(self._cluster, topic.encode(), partition, broker)

    def close(self) -> None:
        self._library.rd_kafka_mock_cluster_destroy(self._cluster)
        self._library.rd_kafka_destroy(self._client)


def _library() -> ctypes.CDLL:
    """The one that Python's package brings along."""
    import confluent_kafka

    beside = Path(confluent_kafka.__file__).parent.parent / "confluent_kafka.libs"
    found = sorted(beside.glob("librdkafka*"))
    if not found:
        pytest.skip(f"no librdkafka in {beside}: built from source, or for another system")
    library = ctypes.CDLL(str(found[0]))
    for name, (result, arguments) in _SIGNATURES.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library
