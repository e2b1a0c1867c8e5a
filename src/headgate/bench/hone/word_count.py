"""WordCount as a streaming query, and where its sentences come from: the same query for every contender."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from headgate.bench.hone.programme import PARTIAL_KEY, Contender

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CANDIDATE_TASKS = 10
"""The paper's tasks of the counting operator."""


def read_sentences(spark: SparkSession, contender: Contender, address: str, topic: str, room: int) -> DataFrame:
    """A topic from its first record on, at most `room` records per batch."""
    reader = spark.readStream.format("kafka" if contender.compose is None else "headgate-kafka")
    reader = reader.option("kafka.bootstrap.servers", address).option("subscribe", topic)
    reader = reader.option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", str(room))
    if contender.compose is not None:
        # Without a gate nobody learns what a record takes; Spark's own source has a task for every partition.
        reader = reader.option("compose", contender.compose).option("minPartitions", str(os.cpu_count() or 1))
    return reader.load()


def word_count(kafka: DataFrame, grouping: str) -> DataFrame:
    """How often each word has come so far."""
    from pyspark.sql import functions as F  # noqa: N812 - PySpark's own habit

    sentence = F.split(F.col("value").cast("string"), " ")
    words = kafka.select("offset", F.posexplode(sentence).alias("place", "word"))
    return (_by_partial_key(words) if grouping == PARTIAL_KEY else words).groupBy("word").count()


def _by_partial_key(words: DataFrame) -> DataFrame:
    """Every word has two candidate tasks that count it; their counts are merged afterwards, as Spark always does.

    Partial key grouping sends a word to the less loaded of the two. A task of Spark knows no other's load: here the two
    take turns, which loads both alike, and is the same again if the batch is repeated.
    """
    from pyspark.sql import functions as F  # noqa: N812

    turn = (F.col("offset") + F.col("place")) % 2
    candidate = F.pmod(F.xxhash64("word", turn), F.lit(CANDIDATE_TASKS))
    return words.withColumn("candidate", candidate).repartition(CANDIDATE_TASKS, "candidate")
