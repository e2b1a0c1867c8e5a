"""The one place that touches Spark's inside. Everything here is private to Spark and may change with it.

:func:`check_spark` says at the start what is missing; callers go on without what they can do without.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headgate.core.policies import POLICIES, Share
from headgate.core.tasks import Stage, Task
from headgate.errors import UnsupportedSpark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import DataStreamWriter

OLDEST_SPARK = (4, 2)
"""First Spark whose Python streaming sources may decide what a batch holds: ``latestOffset(start, limit)``."""

_GATE_NEVER_CAME = "waiting for the Python worker to connect back"
"""Spark's words when a planning process did not start within its ten seconds (a machine under heavy load)."""

_GATE_TALK = "PythonStreamingSourceRunner"
"""In the stack of a failure that happened in the conversation with a planning process."""

_TALK_ENDED = ("Connection reset", "EOFException", "Broken pipe", "SocketException")
"""... because that process has gone, rather than because it raised an error."""


@dataclass(frozen=True, slots=True)
class Support:
    """What this Spark allows: the policies that work, and why others do not."""

    policies: tuple[str, ...]
    missing: str | None = None


def check_spark(spark: SparkSession) -> Support:
    """Refuse a Spark that Headgate cannot stand on; tell which policies work on this one."""
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        raise UnsupportedSpark(
            "spark: a Spark Connect session has no driver-side scheduler to talk to; "
            "use a classic session: SparkSession.builder.master(...).getOrCreate()"
        )
    check_version(spark.version)
    mode = spark.sparkContext.getConf().get("spark.scheduler.mode", "FIFO")
    if mode.upper() != "FAIR":
        return Support(("fifo",), f"spark.scheduler.mode is {mode}, priorities need FAIR (set it before Spark starts)")
    try:
        Pools(spark).probe()
    except Exception as error:
        reason = str(error).splitlines()[0]
        return Support(("fair",), f"the pools of Spark {spark.version} cannot be set ({reason:.120})")
    return Support(tuple(POLICIES))


def use_this_python(spark: SparkSession) -> None:
    """Let planning processes and local workers be this Python, unless the user has named another.

    Spark takes ``python3`` from PATH, which outside an activated environment is one without this package.
    """
    context = spark.sparkContext
    if "PYSPARK_PYTHON" not in os.environ and str(context.master).startswith("local"):
        context.pythonExec = sys.executable


def check_version(version: str) -> None:
    """Raise for a Spark older than :data:`OLDEST_SPARK`."""
    parts = tuple(int("".join(filter(str.isdigit, part)) or 0) for part in version.split(".")[:2])
    if parts < OLDEST_SPARK:
        needed = ".".join(map(str, OLDEST_SPARK))
        raise UnsupportedSpark(
            f"spark.version={version!r}: Headgate needs Spark {needed} or newer "
            f"(sources that decide what a batch holds); pip install 'pyspark>={needed}'"
        )


def lost_its_gate(failure: str) -> bool:
    """Whether a query ended because a planning process died or did not come up; `failure` is Spark's full text."""
    if _GATE_NEVER_CAME in failure:
        return True
    return _GATE_TALK in failure and any(words in failure for words in _TALK_ENDED)


class Pools:
    """Sets ``minShare`` and ``weight`` of Spark's FAIR pools while jobs run.

    Both are final fields without a setter; reflection writes them and Spark's comparator reads them at every offer.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._context = spark.sparkContext._jsc.sc()
        self._pools: dict[str, Any] = {}
        self._fields: tuple[Any, Any] | None = None
        self._applied: dict[str, Share] = {}

    def apply(self, shares: dict[str, Share]) -> None:
        """Write the shares that differ from what the pools have."""
        for name, share in shares.items():
            if self._applied.get(name, Share()) != share and self._write(name, share):
                self._applied[name] = share

    def probe(self) -> None:
        """Find the fields, and write one into a pool of our own."""
        java = self._context.getClass().getClassLoader().loadClass("org.apache.spark.scheduler.Pool")
        self._fields = (_writable(java, "minShare"), _writable(java, "weight"))

    def forget(self, name: str) -> None:
        """Leave the pool as Spark made it; a later query of this name begins with that."""
        self.apply({name: Share()})
        self._applied.pop(name, None)
        self._pools.pop(name, None)

    def _write(self, name: str, share: Share) -> bool:
        pool = self._find(name)
        if pool is None:
            return False
        if self._fields is None:
            self.probe()
        assert self._fields is not None
        min_share, weight = self._fields
        min_share.setInt(pool, share.min_share)
        weight.setInt(pool, share.weight)
        return True

    def _find(self, name: str) -> Any:
        """A pool exists once its first job has been submitted."""
        if name not in self._pools:
            found = self._context.getPoolForName(pool_name(name))
            if not found.isDefined():
                return None
            self._pools[name] = found.get()
        return self._pools[name]


def pool_name(query: str) -> str:
    return f"headgate:{query}"


def _writable(java_class: Any, field: str) -> Any:
    """A field by its name, or by its name inside a Scala class that mangles it."""
    for candidate in java_class.getDeclaredFields():
        if candidate.getName().split("$$")[-1] == field:
            candidate.setAccessible(True)
            return candidate
    raise UnsupportedSpark(f"Spark's scheduler pool has no field {field!r}")


@dataclass(frozen=True, slots=True)
class StreamLeaf:
    """A streaming source in a plan."""

    source: str
    gate: str | None = None


def stream_leaves(df: DataFrame, option: str) -> list[StreamLeaf]:
    """The streaming sources of a DataFrame in plan order, once each: a union with itself shares its sources."""
    leaves = df._jdf.queryExecution().analyzed().collectLeaves().distinct()
    found = (_stream_leaf(leaves.apply(index), option) for index in range(leaves.size()))
    return [leaf for leaf in found if leaf is not None]


def _stream_leaf(leaf: Any, option: str) -> StreamLeaf | None:
    if not leaf.isStreaming():
        return None
    if leaf.nodeName() != "StreamingRelationV2":
        return StreamLeaf(str(leaf.nodeName()))
    gate = leaf.extraOptions().get(option)
    return StreamLeaf(str(leaf.sourceName()), None if gate is None else str(gate))


def watchable(df: DataFrame) -> dict[str, Any] | None:
    """What a probe needs to watch the one source of `df`: a Kafka topic or a folder; None if it is something else."""
    leaves = df._jdf.queryExecution().analyzed().collectLeaves().distinct()
    if leaves.size() != 1:
        return None
    leaf = leaves.apply(0)
    if leaf.nodeName() == "StreamingRelationV2" and str(leaf.sourceName()) == "kafka":
        options = leaf.extraOptions().asCaseSensitiveMap()
        found = {str(key): str(options[key]) for key in options}
        return None if _is_limited(found) else {"kind": "kafka", "options": found}
    if leaf.nodeName() == "StreamingRelation":
        source = leaf.dataSource()
        path = source.options().get("path")
        if path.isDefined() and not _is_limited(_names(source.options())):
            return {"kind": "folder", "path": str(path.get()), "format": str(source.className()).lower()}
    return None


_LIMITS = ("offsetspertrigger", "filespertrigger", "bytespertrigger", "latestfirst")


def _is_limited(options: Iterable[str]) -> bool:
    """Whether a source takes less than there is: then nobody but itself knows what it has left behind."""
    return any(name.lower().endswith(_LIMITS) for name in options)


def _names(options: Any) -> list[str]:
    """The keys of a Scala map."""
    keys = options.keys().toList()
    return [str(keys.apply(index)) for index in range(keys.size())]


def running_session() -> SparkSession | None:
    """The session that this process has already, if any."""
    from pyspark.sql import SparkSession

    return SparkSession.getActiveSession()


def has_watermark(df: DataFrame) -> bool:
    return "EventTimeWatermark" in df._jdf.queryExecution().analyzed().toString()


def writer_frame(writer: DataStreamWriter) -> DataFrame:
    """The DataFrame that a ``writeStream`` belongs to."""
    return writer._df


def writer_option(writer: DataStreamWriter, name: str) -> str | None:
    """An option that the user has set on a ``writeStream``: queryName, checkpointLocation ..."""
    found = _field(writer._jwrite, "extraOptions").get(name)
    return str(found.get()) if found.isDefined() else None


def writer_trigger(writer: DataStreamWriter) -> str:
    """The trigger as text, such as ``ProcessingTimeTrigger(0)``."""
    return str(_field(writer._jwrite, "trigger").toString())


def writer_format(writer: DataStreamWriter) -> str:
    """The sink's format as the user named it."""
    return str(_field(writer._jwrite, "source"))


def _field(owner: Any, name: str) -> Any:
    field = owner.getClass().getDeclaredField(name)
    field.setAccessible(True)
    return field.get(owner)


_STATUS_FIELDS = {
    "StageData": (
        "stageId", "attemptId", "schedulingPool", "submissionTime", "numTasks", "numCompleteTasks", "inputRecords",
        "shuffleReadRecords", "executorRunTime",
    ),
    "TaskData": ("partitionId", "taskMetrics"),
    "TaskMetrics": ("executorRunTime",),
}  # fmt: skip
"""What is read of Spark's status. Its texts leave zeros out, and a field of another name must not pass for one."""


class StatusStore:
    """Finished stages and their tasks from what Spark keeps for its UI, whether that is shown or not.

    Every field of a Java object is a round trip of py4j; Jackson, which Spark has with it, makes one text of them all.
    """

    _NEWEST = 200
    """Stages of one answer at most: others may finish hundreds while one long batch runs."""

    _UNUSED = frozenset({"details", "description", "failureReason", "peakExecutorMetrics", "rddIds"})
    """What makes up most of a stage's text, and is not looked at."""

    def __init__(self, spark: SparkSession) -> None:
        self._context = spark.sparkContext
        self._store: Any = None
        self._to_json: Any = None
        self._by_end: Any = None
        self._falling: Any = None

    def finished_since(self, at_s: float) -> list[Stage]:
        """Stages that finished at `at_s` or later, the newest first."""
        if self._by_end is None:
            self._open()
        # The view is read anew each time. It falls, so that `last` is the lower bound.
        found = json.loads(self._to_json.writeValueAsString(self._by_end.last(int(at_s * 1e3))))
        if not found:  # before its first stage Spark has no list, and its view stays empty
            self._by_end = None
        return [_stage(each["info"]) for each in found if each["info"]["status"] == "COMPLETE"]

    def slowest_first(self, stage: Stage, skip: int, count: int) -> list[Task]:
        """Of a stage's tasks, so many after those that are skipped; failed attempts come after all others."""
        found = self._store.taskList(stage.stage_id, stage.attempt, skip, count, self._falling, None)
        return [_task(each) for each in json.loads(self._to_json.writeValueAsString(found))]

    def _open(self) -> None:
        if self._to_json is None:
            self._store = self._context._jsc.sc().statusStore()
            for name, fields in _STATUS_FIELDS.items():
                for field in fields:
                    self._class(f"api.v1.{name}").getDeclaredField(field)
            self._falling = self._java.org.apache.spark.status.api.v1.TaskSorting.DECREASING_RUNTIME
            self._to_json = self._mapper()
        self._by_end = self._store.store().view(self._class("StageDataWrapper"))
        self._by_end.index("completionTime").reverse().max(self._NEWEST)

    @property
    def _java(self) -> Any:
        return self._context._jvm

    def _mapper(self) -> Any:
        """Texts as short as can be: what is zero or empty is left out."""
        jackson = self._java.com.fasterxml.jackson
        mapper = jackson.databind.ObjectMapper()
        mapper.registerModule(jackson.module.scala.DefaultScalaModule())
        mapper.setSerializationInclusion(jackson.annotation.JsonInclude.Include.NON_DEFAULT)
        unused = jackson.annotation.JsonIgnoreProperties.Value.forIgnoredProperties(set(self._UNUSED))
        mapper.configOverride(self._class("api.v1.StageData")).setIgnorals(unused)
        return mapper

    def _class(self, name: str) -> Any:
        return self._store.getClass().getClassLoader().loadClass(f"org.apache.spark.status.{name}")


def _stage(info: dict[str, Any]) -> Stage:
    return Stage(
        stage_id=info.get("stageId", 0),
        attempt=info.get("attemptId", 0),
        pool=info.get("schedulingPool", ""),
        submitted_at_s=info.get("submissionTime", 0) / 1e3,
        tasks=info.get("numTasks", 0),
        succeeded_tasks=info.get("numCompleteTasks", 0),
        read_rows=info.get("inputRecords", 0),
        shuffled_rows=info.get("shuffleReadRecords", 0),
        run_s=info.get("executorRunTime", 0) / 1e3,
    )


def _task(data: dict[str, Any]) -> Task:
    return Task(data.get("partitionId", 0), data.get("taskMetrics", {}).get("executorRunTime", 0) / 1e3)


def qualified(spark: SparkSession, path: str) -> str:
    """A path as Hadoop understands it, with its scheme: ``file:/...``, ``s3a://...``."""
    context = spark.sparkContext
    assert context._jvm is not None
    hadoop_path = context._jvm.org.apache.hadoop.fs.Path(path)
    filesystem = hadoop_path.getFileSystem(context._jsc.hadoopConfiguration())
    return str(filesystem.makeQualified(hadoop_path).toString())


def compile_s(spark: SparkSession) -> float:
    """The time for which the JVM's compilers have been at work since it started."""
    java = spark.sparkContext._jvm
    assert java is not None
    return float(java.java.lang.management.ManagementFactory.getCompilationMXBean().getTotalCompilationTime()) / 1e3


def clear_heap(spark: SparkSession) -> None:
    """Let go what stopped queries have left: their state, which Spark keeps for up to a minute more, and garbage."""
    java = spark.sparkContext._jvm
    assert java is not None
    java.org.apache.spark.sql.execution.streaming.state.StateStore.stop()
    java.java.lang.System.gc()


class LightListener:
    """Hands over progress as one JSON text per event.

    PySpark's own listener fetches every field of an event through py4j, dozens of round trips each; a slow listener
    slows every query.
    """

    def __init__(
        self, on_progress: Callable[[dict[str, Any]], None], on_terminated: Callable[[str, str | None], None]
    ) -> None:
        self._on_progress = on_progress
        self._on_terminated = on_terminated
        self._java: Any = None

    def attach(self, spark: SparkSession) -> None:
        from pyspark.java_gateway import ensure_callback_server_started

        gateway = spark.sparkContext._gateway
        assert gateway is not None
        ensure_callback_server_started(gateway)
        package = gateway.jvm.org.apache.spark.sql.streaming
        self._java = package.PythonStreamingQueryListenerWrapper(self)
        spark.streams._jsqm.addListener(self._java)

    def detach(self, spark: SparkSession) -> None:
        if self._java is not None:
            spark.streams._jsqm.removeListener(self._java)
            self._java = None

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802 (Spark's names)
        """Nothing to do: :meth:`Headgate.start` knows."""

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        self._on_progress(json.loads(event.progress().json()))

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        """Nothing to do."""

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        failure = event.exception()
        self._on_terminated(event.runId().toString(), failure.get() if failure.isDefined() else None)

    class Java:
        implements = ("org.apache.spark.sql.streaming.PythonStreamingQueryListener",)
