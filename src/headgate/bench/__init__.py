"""Headgate against its peers: contenders that run the same queries, each in a Spark application of its own."""
