"""Kafka topics behind a gate (extra ``headgate[kafka]``)."""
