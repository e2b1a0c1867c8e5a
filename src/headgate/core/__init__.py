"""The deciding part: pure functions of a snapshot and `now`. Nothing here imports pyspark (a test makes sure)."""
