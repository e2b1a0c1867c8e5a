"""Gated sources: what Spark's planning processes and executors run."""
