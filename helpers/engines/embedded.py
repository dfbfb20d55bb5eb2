"""A real one-node Kafka (KRaft) as a child process on loopback: for machines without Docker."""

import itertools
import os
import random
import signal
import socket
import subprocess
import time
from pathlib import Path
from uuid import uuid4

from helpers.engines import janitor
from helpers.engines.jars import broker_jars
from helpers.engines.java import find_java
from helpers.errors import LabError
from helpers.paths import run_dir

START_SECONDS = 60
HOST = "127.0.0.1"
PORTS = range(20_000, 32_000)  # below those of outgoing connections, which would take a broker's port while it restarts
CLUSTER = "4L6g3nShT-eMCtK--X86sw"  # any 16 bytes in base64 will do

SETTINGS = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@{host}:{controller_port}
listeners=PLAINTEXT://{host}:{port},CONTROLLER://{host}:{controller_port}
advertised.listeners=PLAINTEXT://{host}:{port}
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={data}
num.partitions=1
auto.create.topics.enable=false
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
"""


class EmbeddedBroker:
    """Start it, use `.bootstrap`, stop it."""

    def __init__(self) -> None:
        self._java = find_java().path
        self._folder = run_dir() / f"kafka-{uuid4().hex[:8]}"
        self._folder.mkdir()
        self.log = self._folder / "broker.log"
        self._process: subprocess.Popen | None = None
        self.bootstrap = ""

    def start(self) -> "EmbeddedBroker":
        wanted = os.environ.get("LAB_KAFKA_PORT")
        for _ in range(3):
            one, other = _free_ports(2)
            port = _wanted_port(wanted) if wanted else one
            self.bootstrap = f"{HOST}:{port}"
            if self._try(port, controller_port=one if port == other else other):
                return self
            if "already in use" not in self.log.read_text() or wanted:
                break  # only a port lost to somebody else between choosing and binding is worth another try
        raise LabError(f"The embedded Kafka broker did not start. The end of its log:\n{self.log_tail()}")

    def stop(self) -> None:
        if self._process is not None:
            janitor.end_group(self._process.pid)
            self._process.wait()
            janitor.forget(self._process.pid)
            self._process = None

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    def log_tail(self, lines: int = 15) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def _command(self, memory: list[str], *main: str) -> list[str]:
        classpath = os.pathsep.join(map(str, broker_jars()))
        quiet = ["-XX:-UsePerfData", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"]
        return [self._java, *memory, *quiet, "-cp", classpath, *main]

    def _try(self, port: int, controller_port: int) -> bool:
        settings = self._folder / "server.properties"
        data = self._folder / f"data-{port}"
        settings.write_text(SETTINGS.format(host=HOST, port=port, controller_port=controller_port, data=data))
        small = ["-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        with self.log.open("ab") as log:
            subprocess.run(
                self._command(small, "kafka.tools.StorageTool", "format", "-t", CLUSTER, "-c", str(settings)),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        return self._run(settings, port)

    def restart(self) -> None:
        """kill -9, then start again on the same port with the same data."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        janitor.forget(self._process.pid)
        if not self._run(self._folder / "server.properties", int(self.bootstrap.rpartition(":")[2])):
            raise LabError(f"The embedded Kafka broker did not start again. The end of its log:\n{self.log_tail()}")

    def _run(self, settings: Path, port: int) -> bool:
        large = ["-Xms512m", "-Xmx512m", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command(large, "kafka.Kafka", str(settings)),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        janitor.kill_at_exit(self._process.pid)
        listens = False
        try:
            listens = self._comes_up(port)
        finally:
            if not listens:
                self.stop()
        return listens

    def _comes_up(self, port: int) -> bool:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and self._process.poll() is None:
            if _listens(port):
                return True
            time.sleep(0.05)
        return False


def _free_ports(count: int) -> list[int]:
    """So many different ports that nobody listens on."""
    shuffled = random.sample(PORTS, len(PORTS))
    free = list(itertools.islice(filter(_is_free, shuffled), count))
    if len(free) < count:
        raise LabError(f"All ports from {PORTS.start} to {PORTS.stop - 1} are taken. Stop what listens there.")
    return free


def _is_free(port: int) -> bool:
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind((HOST, port))
        except OSError:
            return False
    return True


def _wanted_port(text: str) -> int:
    port = int(text) if text.isdecimal() else 0
    if not 1024 <= port <= 65535:
        raise LabError(f"LAB_KAFKA_PORT is {text!r}: give a port from 1024 to 65535, or unset it to get a free one.")
    if not _is_free(port):
        raise LabError(
            f"Port {port} (LAB_KAFKA_PORT) is taken by another program. Choose another, "
            "or unset LAB_KAFKA_PORT to get a free one."
        )
    return port


def _listens(port: int) -> bool:
    with socket.socket() as sock:
        sock.settimeout(0.2)
        return sock.connect_ex((HOST, port)) == 0
