"""The user's way in: :class:`Headgate` holds the coordinator of one Spark and starts queries with deadlines."""

from __future__ import annotations

import itertools
import json
import logging
import os
import tempfile
import threading
import time
import uuid
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any

from headgate.core.admission import DEFAULT_RULE, find_rule
from headgate.core.arrivals import Arrivals
from headgate.core.batch import BatchRecord
from headgate.core.cost import CostModel
from headgate.core.dispatcher import Dispatcher
from headgate.core.durations import Duration, parse_duration
from headgate.core.policies import DEFAULT_POLICY, Share, find_policy
from headgate.core.query_state import GateConfig
from headgate.core.snapshot import Promise
from headgate.engine import internals, model_store
from headgate.engine import writer as writers
from headgate.engine.coordinator import Coordinator
from headgate.engine.progress import parse_progress
from headgate.engine.query import GatedQuery
from headgate.engine.session import local_cores, local_slots, session
from headgate.engine.stragglers import StragglerWatch
from headgate.engine.worker import Worker
from headgate.errors import BadParameter, HeadgateError, UnsupportedSpark
from headgate.metrics.recorder import Recorder
from headgate.metrics.runs import new_run
from headgate.metrics.status import QueryStatus, status_of
from headgate.sources import options, probe
from headgate.sources.gate import FORMAT as GATE_FORMAT
from headgate.state.backup import Backup
from headgate.state.protection import Protection

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import DataStreamReader, DataStreamWriter, StreamingQuery

log = logging.getLogger("headgate")

DEFAULT_SLO = 0.99
"""The share of records that must be in time, unless said otherwise."""

SAVE_EVERY_BATCHES = 10
"""How often a query's cost model is saved; it changes slowly and a restart relearns in a few batches."""

_BIND_WAIT_S = 30.0
"""How long a query waits for the gates of the one started before it."""

instances: weakref.WeakSet[Headgate] = weakref.WeakSet()
"""Every open Headgate of this process, for views such as ``headgate run``; deciding code never looks here."""


class Headgate:
    """Deadlines for the streaming queries of one Spark session.

    :param spark: your session; without one, :func:`headgate.session` starts one and it is stopped at the end.
    :param policy: which running batch gets the cores: edf (default), rdas, lbf, edf-lbf, fair or fifo.
    :param admission: when batches start: slo (default), latest, zstream, qspark, or observe (only measure).
    :param records: file for all finished batches (JSON lines); None for a fresh file under the user's state folder.
    :param socket_dir: folder for the private socket; default: the system's temporary folder.
    """

    def __init__(
        self,
        spark: SparkSession | None = None,
        *,
        policy: str | None = None,
        admission: str = DEFAULT_RULE,
        records: str | os.PathLike[str] | None = None,
        socket_dir: str | None = None,
    ) -> None:
        find_rule(admission)
        find_policy(policy or DEFAULT_POLICY)
        # A session that is there already (a notebook's) is used as if it had been handed in, and never stopped.
        found = spark or internals.running_session()
        self._owns_spark = found is None
        self.spark: SparkSession = session() if found is None else found
        self._support = internals.check_spark(self.spark)
        internals.use_this_python(self.spark)
        self.policy = self._choose_policy(policy)
        self.admission = admission
        self.recorder = Recorder(new_run() if records is None else records)
        self._pools = internals.Pools(self.spark)
        self._stragglers = StragglerWatch(internals.StatusStore(self.spark))
        time_sliced = (self._local_slots or 0) >= 2 * self.cores
        dispatcher = Dispatcher(self.cores, find_policy(self.policy), self.policy, time_sliced=time_sliced)
        self._coordinator = Coordinator(dispatcher, self._apply_shares, self._record, socket_dir)
        self._queries: dict[str, GatedQuery] = {}
        self._checkpoints: dict[str, str] = {}
        self._numbers = itertools.count(1)
        self._starting = threading.RLock()
        self._temporary: dict[str, tempfile.TemporaryDirectory[str]] = {}
        self._closed = False
        self._wanted_shares: dict[str, Share] = {}
        self._worker = Worker("headgate-worker")
        self._bookkeeper = Worker("headgate-bookkeeper")  # it asks Spark about tasks and may have to wait for that
        self._register_sources()
        self._listener = internals.LightListener(self._on_progress, self._on_terminated)
        self._listener.attach(self.spark)
        self._coordinator.start()
        instances.add(self)

    # ---- what users write

    @property
    def readStream(self) -> DataStreamReader:  # noqa: N802 (Spark's name)
        """As ``spark.readStream``, for Headgate's own sources: ``headgate-kafka``, ``-files`` and ``-trace``."""
        reader = self.spark.readStream.option(options.FOLDER, self._coordinator.address.folder)
        # Spark's own file sources take it from the session; a Python data source does not see the session.
        reader = reader.option("timeZone", str(self.spark.conf.get("spark.sql.session.timeZone")))
        return reader.option(options.GATE, uuid.uuid4().hex).option(options.TASKS, str(self.cores))

    def gate(self, df: DataFrame) -> DataFrame:
        """Put a gate before any streaming DataFrame. Apply it to the raw source, before ``withWatermark``.

        Spark's own Kafka source and file sources are watched, so that the gate knows what waits in them; of any other
        source it is estimated from the query's progress.
        """
        if not df.isStreaming:
            raise BadParameter("df", "a static DataFrame", "only streams have batches to hold", "use spark.readStream")
        if internals.has_watermark(df):
            raise BadParameter(
                "df", "a DataFrame with a watermark", "the gate must come before it",
                "write hg.gate(source).withWatermark(...), not hg.gate(source.withWatermark(...))",
            )  # fmt: skip
        gate = self.readStream.format(GATE_FORMAT).schema(df.schema)
        if (watched := self._watchable(df)) is not None:
            gate = gate.option(probe.OPTION, json.dumps(watched))
        return gate.load().union(df)

    def _watchable(self, df: DataFrame) -> dict[str, Any] | None:
        """Fails open: a plan that looks different in some Spark costs the probe, not the gate."""
        try:
            return internals.watchable(df)
        except Exception as error:
            log.warning("what waits in this source is only estimated: %s", error)
            return None

    def start(
        self,
        writer: DataStreamWriter,
        *,
        deadline: Duration | None = None,
        slo: float = DEFAULT_SLO,
        admission: str | None = None,
        to_table: str | None = None,
        backup: Backup | None = None,
    ) -> GatedQuery:
        """Start a query with a promise: `slo` of its records have their result within `deadline` of their arrival.

        :param writer: ``df.writeStream`` as you would start it, with sink, output mode, name and checkpoint.
        :param deadline: such as "5s"; without one the query runs in the slack of the others.
        :param slo: the share of records that must be in time, between 0 and 1.
        :param admission: another rule for this query alone.
        :param to_table: call ``writer.toTable(to_table)`` instead of ``writer.start()``.
        :param backup: keep its state in erasure-coded fragments, saved while it runs.
        """
        promise = parse_promise(deadline, slo)
        rule_name = admission or self.admission
        rule = find_rule(rule_name)
        gates = writers.gates_of(writer)
        if rule_name != "observe":
            writers.check_trigger(writer, deadline)
        if backup is not None and writers.name_of(writer) is None:
            raise BadParameter(
                "queryName", None, "a backup is found again by the name of its query", 'add .queryName("orders")'
            )
        with self._starting:
            self._check_open()
            name = self._name_of(writer)
            config = GateConfig(name, promise, rule, rule_name)
            protection = None if backup is None else Protection(backup, name)
            query = self._start(writer, config, gates, to_table, protection)
            if protection is not None:
                protection.begin(self._checkpoints[name])
            return query

    @property
    def queries(self) -> dict[str, GatedQuery]:
        """The queries that are running, by name."""
        return {name: query for name, query in list(self._queries.items()) if query.isActive}

    @property
    def closed(self) -> bool:
        return self._closed

    @property
    def cores(self) -> int:
        """The cores that Spark's tasks run on: a local master may have more slots for them than the machine has."""
        cores = int(self.spark.sparkContext.defaultParallelism)
        return cores if self._local_slots is None else min(cores, local_cores())

    @property
    def _local_slots(self) -> int | None:
        return local_slots(self.spark.sparkContext.master or "")

    def status(self) -> list[QueryStatus]:
        """Every query at this moment: promise, reality, backlog, what its gate does and why."""
        summaries = self.recorder.summaries()
        return self._coordinator.call(lambda: status_of(self._coordinator.dispatcher, summaries))

    def coordinator_cpu_s(self) -> float:
        """CPU seconds that deciding has cost so far."""
        return self._coordinator.call(time.thread_time)

    def stop(self) -> None:
        """Stop all queries, save what was learned and free everything; safe to call twice."""
        if self._closed:
            return
        self._closed = True
        with ExitStack() as steps:  # each is done even if one before it fails; the last one named comes first
            if self._owns_spark:
                steps.callback(self.spark.stop)
            for folder in list(self._temporary.values()):
                steps.callback(folder.cleanup)
            steps.callback(self.recorder.close)
            steps.callback(self._worker.finish, timeout_s=2.0)
            steps.callback(self._bookkeeper.finish, timeout_s=2.0)
            steps.callback(self._coordinator.stop)
            steps.callback(self._listener.detach, self.spark)
            steps.callback(self._stop_queries)

    def __enter__(self) -> Headgate:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    # ---- starting

    def _start(
        self, writer: DataStreamWriter, config: GateConfig, gates: list[str], to_table: str | None,
        protection: Protection | None,
    ) -> GatedQuery:  # fmt: skip
        name = config.name
        checkpoint = internals.qualified(self.spark, self._checkpoint_of(writer, name))
        self._checkpoints[name] = checkpoint
        recoverable = writers.can_recover(writer)
        query = GatedQuery(
            name=name,
            start=self._launcher(writer, config, gates, to_table),
            lost_its_gate=lambda failure: recoverable and not self._closed and internals.lost_its_gate(failure),
            summary=lambda: self.recorder.summaries().get(name),
            batches=lambda: self.recorder.batches(name),
            protection=protection,
        )
        self._queries[name] = query
        if self._closed:
            query.stop()
            self._check_open()
        if not query.isActive:  # it failed before anybody could tell whose end that was
            self._on_terminated(str(query.runId), str(query.exception()))
        return query

    def _launcher(
        self, writer: DataStreamWriter, config: GateConfig, gates: list[str], to_table: str | None
    ) -> Callable[[], StreamingQuery]:
        """A function that starts the query, the first time and after a crash of its gate."""
        folder = self._state_dir(config.name)

        def launch() -> StreamingQuery:
            with self._starting:
                self._wait_until_bound()
                self._check_open()
                cost = model_store.load(folder)
                self._coordinator.call(lambda: self._expect(config, cost, gates, folder))
                try:
                    with writers.own_pool(self.spark, config.name):
                        return writer.start() if to_table is None else writer.toTable(to_table)
                except BaseException:
                    self._coordinator.call(lambda: self._coordinator.forget(config.name))
                    raise

        return launch

    def _expect(self, config: GateConfig, cost: CostModel, gates: list[str], folder: str | None) -> None:
        self._coordinator.dispatcher.cores = self.cores  # executors may have come or gone
        self._coordinator.dispatcher.add(config, cost)
        self._coordinator.expect(config.name, gates, folder)

    def _check_open(self) -> None:
        if self._closed:
            raise HeadgateError("this Headgate has been stopped; make a new one")

    def _wait_until_bound(self) -> None:
        """Let the query before come up first.

        Two queries over one gated DataFrame present the same gate, so the first must be known before the second. And
        Spark gives a planning process ten seconds to start: many at once on few cores would not make it.
        """
        give_up_s = time.monotonic() + _BIND_WAIT_S
        while waited_for := self._coordinator.call(self._coordinator.awaited):
            self._check_open()
            late = time.monotonic() > give_up_s
            for name in waited_for:
                if late or (query := self._queries.get(name)) is None or not query.isActive:
                    log.warning("the gates of %s have not come up; going on without them", name)
                    self._coordinator.call(partial(self._coordinator.unexpect, name))
            time.sleep(0.02)

    def _name_of(self, writer: DataStreamWriter) -> str:
        name = writers.name_of(writer)
        if name is None:
            name = f"query-{next(self._numbers)}"
            writer.queryName(name)
        if name in self.queries:
            raise BadParameter("queryName", name, "a query of this name is running", "give each query its own name")
        return name

    def _checkpoint_of(self, writer: DataStreamWriter, name: str) -> str:
        """The user's checkpoint, or a temporary one: a query whose gate is lost goes on from it."""
        given = writers.checkpoint_of(self.spark, writer, name)
        if given is None:
            folder = tempfile.TemporaryDirectory(prefix=f"headgate-{name}-", ignore_cleanup_errors=True)
            self._temporary[name] = folder
            given = folder.name
            writer.option("checkpointLocation", given)
        return given

    def _state_dir(self, name: str) -> str | None:
        """Where Headgate keeps what it knows about a query; None if that is nowhere, or the query has ended."""
        checkpoint = self._checkpoints.get(name)
        return None if checkpoint is None else model_store.state_dir(checkpoint)

    # ---- running

    def _apply_shares(self, shares: dict[str, Share]) -> None:
        """Hand the newest shares to the worker: a JVM that pauses must not delay decisions."""
        if self._support.missing is None:
            self._wanted_shares = shares
            self._worker.post(lambda: self._pools.apply(self._wanted_shares))

    def _record(self, record: BatchRecord, arrivals: Arrivals) -> None:
        self._bookkeeper.post(lambda: self._keep(record, arrivals))
        state = self._coordinator.dispatcher.queries.get(record.query)
        if state is not None and record.batch_id % SAVE_EVERY_BATCHES == SAVE_EVERY_BATCHES - 1:
            folder, cost = self._state_dir(record.query), state.cost
            self._worker.post(lambda: model_store.save(folder, cost))

    def _keep(self, record: BatchRecord, arrivals: Arrivals) -> None:
        times = self._stragglers.times_of(record)
        if times is not None:
            self._coordinator.worked(record.query, times)
        self.recorder.add(replace(record, tasks=times), arrivals)

    def _on_progress(self, event: dict[str, Any]) -> None:
        progress = parse_progress(event)
        if progress is not None:
            self._coordinator.progress(progress)

    def _on_terminated(self, run_id: str, failure: str | None) -> None:
        """Runs in the listener's thread, which must not wait: the rest happens in a thread of its own."""
        for query in list(self._queries.values()):
            run = query.spark_query
            if str(run.runId) == run_id and not self._closed:
                threading.Thread(target=self._after_end, args=(query, run, failure), daemon=True).start()

    def _after_end(self, query: GatedQuery, run: StreamingQuery, failure: str | None) -> None:
        if not query.ended(run, failure):
            self._forget(query)

    def _forget(self, query: GatedQuery) -> None:
        """Keep what was learned and drop the rest, unless another query has taken the name meanwhile."""
        with self._starting:
            if self._queries.get(query.name) is not query:
                return
            del self._queries[query.name]
            cost = self._learned(query.name)
            folder = self._state_dir(query.name)
            del self._checkpoints[query.name]
            if cost is not None and cost.batches:
                model_store.save(folder, cost)
        query.end_backups()
        self._worker.post(lambda: self._pools.forget(query.name))
        if (temporary := self._temporary.pop(query.name, None)) is not None:
            temporary.cleanup()

    def _learned(self, name: str) -> CostModel | None:
        """What its batches taught; nothing if the coordinator has ended, perhaps only in this moment."""
        try:
            return self._coordinator.call(lambda: self._end(name))
        except HeadgateError:
            log.warning("%s: the coordinator has ended; what was learned since it was last saved is lost", name)
            return None

    def _end(self, name: str) -> CostModel | None:
        state = self._coordinator.dispatcher.queries.get(name)
        self._coordinator.forget(name)
        return None if state is None else state.cost

    def _stop_queries(self) -> None:
        """All at once: each takes Spark a fraction of a second."""
        with self._starting:  # a query that ended by itself may still be saving what it learned
            queries = list(self._queries.values())
        if not queries:
            return
        with ThreadPoolExecutor(max_workers=min(16, len(queries))) as pool:
            for query, result in [(query, pool.submit(query.stop)) for query in queries]:
                if (error := result.exception()) is not None:
                    log.warning("%s did not stop cleanly: %r", query.name, error)
        for query in queries:
            self._forget(query)

    # ---- setting up

    def _choose_policy(self, wanted: str | None) -> str:
        support = self._support
        if wanted is None and DEFAULT_POLICY not in support.policies:
            log.warning("%s; policies that remain: %s", support.missing, ", ".join(support.policies))
            return support.policies[0]
        policy = wanted or DEFAULT_POLICY
        if policy not in support.policies:
            raise UnsupportedSpark(
                f"policy={policy!r}: {support.missing}; policies that remain: {', '.join(support.policies)}"
            )
        return policy

    def _register_sources(self) -> None:
        from headgate.sources.files.source import FilesSource
        from headgate.sources.gate import GateSource
        from headgate.sources.kafka.source import KafkaSource
        from headgate.sources.trace import TraceSource

        for source in (GateSource, TraceSource, FilesSource, KafkaSource):
            self.spark.dataSource.register(source)


def parse_promise(deadline: Duration | None, slo: float) -> Promise:
    """Check what a user promises."""
    if isinstance(slo, bool) or not isinstance(slo, int | float) or not 0.0 < slo < 1.0:
        raise BadParameter(
            "slo", slo, "the share of records in time must lie between 0 and 1", "write for example 0.99"
        )
    return Promise(None if deadline is None else parse_duration(deadline, "deadline"), float(slo))
