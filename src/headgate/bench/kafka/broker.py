"""One Kafka node on the loopback address: KRaft, free ports, a folder of its own.

with LocalBroker(folder) as broker:
    spark.readStream.format("headgate-kafka").option("kafka.bootstrap.servers", broker.address)
"""

from __future__ import annotations

import base64
import os
import shutil
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

from headgate.bench.kafka.jars import kafka_jars
from headgate.errors import HeadgateError

START_S = 60.0
STOP_S = 20.0
HEAP = "512m"

_CONFIG = """process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller},LOGIN://127.0.0.1:{login}
advertised.listeners=PLAINTEXT://127.0.0.1:{port},LOGIN://127.0.0.1:{login}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,LOGIN:SASL_PLAINTEXT
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
sasl.enabled.mechanisms=PLAIN
listener.name.login.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \\
  user_{user}="{password}";
log.dirs={folder}/data
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
auto.create.topics.enable=false
delete.topic.enable=true
log.retention.check.interval.ms=500
log.cleaner.backoff.ms=200
file.delete.delay.ms=100
"""


class BrokerFailed(HeadgateError, RuntimeError):
    """Kafka did not come up."""


class LocalBroker:
    """Start, stop and start again; its data stay in `folder`."""

    user, password = "reader", "a-secret-for-tests"

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self._port, self._controller, self._login = _free_ports(3)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._port}"

    @property
    def login_address(self) -> str:
        """Where user and password are asked for."""
        return f"127.0.0.1:{self._login}"

    def start(self) -> LocalBroker:
        config = self.folder / "server.properties"
        if not config.exists():
            self._format(config)
        with (self.folder / "kafka.log").open("ab") as log:
            self._process = subprocess.Popen(
                self._java("kafka.Kafka", str(config)), stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C is for whoever uses it; it is stopped in order
            )  # fmt: skip
        try:
            self._wait_until_up()
        except BaseException:
            self.kill()
            raise
        return self

    def stop(self) -> None:
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def kill(self) -> None:
        """As a machine that loses its power."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def __enter__(self) -> LocalBroker:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _format(self, config: Path) -> None:
        """A new node needs a cluster's name on its disk before its first start."""
        self.folder.mkdir(parents=True, exist_ok=True)
        values = {"port": self._port, "controller": self._controller, "login": self._login, "folder": self.folder}
        config.write_text(_CONFIG.format(**values, user=self.user, password=self.password))
        cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        # Joined by "=": one name in 64 begins with "-", which would be read as the next option.
        command = self._java("kafka.tools.StorageTool", "format", f"--cluster-id={cluster}", "-c", str(config))
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            config.unlink()
            raise BrokerFailed(f"Kafka could not prepare {self.folder}: {done.stdout[-500:]}{done.stderr[-500:]}")

    def _java(self, main: str, *arguments: str) -> list[str]:
        home = os.environ.get("JAVA_HOME")
        java = f"{home}/bin/java" if home else shutil.which("java") or "java"
        classpath = f"{kafka_jars()}/*"
        return [java, f"-Xmx{HEAP}", f"-Xms{HEAP}", "-XX:+UseSerialGC", "-cp", classpath, main, *arguments]

    def _wait_until_up(self) -> None:
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient

        give_up_s = time.monotonic() + START_S
        admin = AdminClient({"bootstrap.servers": self.address, "log_level": 0})
        while True:
            assert self._process is not None
            try:
                if admin.list_topics(timeout=1.0).brokers:
                    return
            except KafkaException:
                pass
            if self._process.poll() is not None or time.monotonic() > give_up_s:
                tail = (self.folder / "kafka.log").read_text(errors="replace")[-800:]
                raise BrokerFailed(f"Kafka did not come up in {self.folder}:\n{tail}")
            time.sleep(0.1)


@contextmanager
def source(name: str) -> Iterator[str | None]:
    """A broker's address for ``--source kafka``, as long as the block runs; nothing for ``--source trace``."""
    if name == "trace":
        yield None
        return
    with (
        tempfile.TemporaryDirectory(prefix="headgate-kafka-", ignore_cleanup_errors=True) as folder,
        LocalBroker(folder) as broker,
    ):
        yield broker.address


def _free_ports(count: int) -> list[int]:
    """All open at once, so that they differ."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports
