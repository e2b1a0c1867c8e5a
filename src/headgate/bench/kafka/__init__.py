"""A real Kafka for demos, benchmarks and tests, and Spark's own connector to compare with."""
