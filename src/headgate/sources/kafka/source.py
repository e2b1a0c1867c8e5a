"""``format("headgate-kafka")``: Kafka topics behind a gate, with the options and columns of Spark's own source.

hg.readStream.format("headgate-kafka").option("kafka.bootstrap.servers", "host:9092").option("subscribe", "orders")
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from pyspark.sql.datasource import DataSource, DataSourceStreamReader
from pyspark.sql.types import StructType

from headgate.errors import BadParameter, HeadgateError
from headgate.sources.feed import Feed, Range
from headgate.sources.kafka.config import KafkaConfig
from headgate.sources.kafka.memory import BeginningMemory, FileMemory, ForgetfulMemory
from headgate.sources.kafka.positions import Slice
from headgate.sources.kafka.reader import KafkaRangeReader
from headgate.sources.options import TASKS, gate_of, positive_int, text_of
from headgate.sources.reader import GatedReader

FORMAT = "headgate-kafka"


class KafkaSource(DataSource):
    """Options as in Spark's Kafka source, and `arrival`, `compose`, `backlogUnit`, `stateLocation`."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        from headgate.sources.kafka.columns import schema_ddl

        return schema_ddl(with_headers=KafkaConfig.parse(self.options).include_headers)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 (Spark's name)
        config = KafkaConfig.parse(self.options)
        self._check_schema(schema)
        _check_library()
        return KafkaReader(dict(self.options), config)

    def _check_schema(self, schema: StructType) -> None:
        given = ", ".join(field.name for field in schema)
        wanted = ", ".join(column.split()[0].rstrip(":") for column in _columns(self.schema()))
        if given != wanted:
            raise BadParameter("schema", given, f"Kafka's columns are {wanted}", "leave .schema(...) out")


def _columns(ddl: str) -> list[str]:
    """The columns of a schema as text: planning processes have no SparkContext, which PySpark needs to parse DDL."""
    return ddl.replace("struct<key: string, value: binary>", "").split(", ")


def _check_library() -> None:
    try:
        import confluent_kafka  # noqa: F401
    except ImportError as error:
        raise HeadgateError(
            f"format({FORMAT!r}) needs the package confluent-kafka ({error}):"
            " from a checkout, pip install '.[kafka]', on every worker too"
        ) from error


class KafkaReader(GatedReader):
    """Gated reader over topics."""

    needs_state = True

    def __init__(self, options: Mapping[str, str], config: KafkaConfig) -> None:
        super().__init__(
            gate=gate_of(options),
            read_range=KafkaRangeReader(config),
            max_rows=config.max_offsets_per_trigger,
            tasks=positive_int(options, TASKS, 2) or 2,
        )
        self._config = config
        self._state_location = text_of(options, "stateLocation")

    def make_feed(self, state_dir: str | None) -> Feed:
        from headgate.sources.kafka.broker import Broker
        from headgate.sources.kafka.feed import KafkaFeed
        from headgate.sources.kafka.sizes import RecordSizes, Sampler

        sizes = RecordSizes(Sampler(self._config)) if self._config.backlog_unit == "bytes" else None
        deadline_s = None if self._gate is None else self._gate.deadline_s
        broker = Broker(self._config)
        memory = self._memory(self._state_location or state_dir, broker.identity)
        return KafkaFeed(self._config, broker, memory, sizes, deadline_s)

    def parts_of(self, share: Range) -> list[str]:
        return [str(Slice(*each)) for each in share["slices"]]

    def _memory(self, folder: str | None, cluster: Callable[[], str]) -> BeginningMemory:
        """Sources of one query that read the same topics begin at the same place: they may share a file."""
        if folder is None and self._config.beginning.moves:
            raise BadParameter(
                "stateLocation", None, "where the query began (latest, or at a time) must survive a restart",
                'add .option("stateLocation", "/a/folder"), or begin with "earliest" or with offsets',
            )  # fmt: skip
        if folder is None:
            return ForgetfulMemory()
        return FileMemory(folder, json.dumps([str(self._config.subscription), str(self._config.beginning)]), cluster)
