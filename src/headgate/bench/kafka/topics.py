"""Topics of a benchmark's own: made, filled and deleted."""

from __future__ import annotations

from typing import Any


def create(address: str, topic: str, partitions: int) -> None:
    """A topic whose records are stamped by the broker when they come."""
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": address, "log_level": 0})  # must outlive the answer
    made = NewTopic(topic, partitions, 1, config={"message.timestamp.type": "LogAppendTime"})
    for answer in admin.create_topics([made]).values():
        answer.result()


def delete(address: str, topic: str) -> None:
    from confluent_kafka.admin import AdminClient

    admin = AdminClient({"bootstrap.servers": address, "log_level": 0})
    for answer in admin.delete_topics([topic]).values():
        answer.result()


def producer(address: str) -> Any:
    """One that gathers for a few milliseconds only: short against any latency that is measured."""
    from confluent_kafka import Producer

    return Producer({"bootstrap.servers": address, "linger.ms": 5, "queue.buffering.max.messages": 1_000_000})


def send(made: Any, topic: str, value: str | bytes, partition: int) -> None:
    while True:
        try:
            made.produce(topic, value, partition=partition)
            return
        except BufferError:  # the broker is slower than the traffic: then this is the traffic
            made.poll(0.01)
