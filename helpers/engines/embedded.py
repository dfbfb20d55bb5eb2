"""A real one-node Kafka (KRaft) as a child process on loopback: for machines without Docker."""

import itertools
import os
import random
import shutil
import signal
import socket
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from helpers.engines import janitor, jvm_log
from helpers.engines.broker_settings import HEAP, STARTED, as_properties, new_cluster_id
from helpers.engines.jars import broker_jars
from helpers.engines.java import find_java
from helpers.engines.scratch import run_dir
from helpers.errors import LabError
from helpers.settings import given

START_SECONDS = 60
HOST = "127.0.0.1"
PORTS = range(20_000, 32_000)  # below those of outgoing connections, which would take a broker's port while it restarts
QUIET = [
    "-XX:-UsePerfData",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
    "-Dorg.slf4j.simpleLogger.log.kafka.server.KafkaRaftServer=info",  # it says when the broker has started
]


class EmbeddedBroker:
    """Start it, use `.bootstrap`, stop it."""

    def __init__(self) -> None:
        self._java = find_java().path
        self._folder = run_dir() / f"kafka-{uuid4().hex[:8]}"
        self._process: subprocess.Popen | None = None
        self.log = self._folder / "broker.log"
        self._jvm_log = self._folder / "jvm.log"
        self.bootstrap = ""

    def start(self) -> "EmbeddedBroker":
        self._folder.mkdir()
        try:
            wanted = _wanted_port()
            for _ in range(3):
                one, other = _free_ports(2)
                port = wanted or one
                self.bootstrap = f"{HOST}:{port}"
                if self._try(port, controller_port=one if port == other else other):
                    return self
                if "already in use" not in self.log.read_text() or wanted:
                    break  # only a port lost to somebody else between choosing and binding is worth another try
            raise LabError(f"The embedded Kafka broker did not start. The end of its log:\n{self.log_tail()}")
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End it, alive or dead, and delete its data. Safe to call twice."""
        self._end()
        shutil.rmtree(self._folder, ignore_errors=True)

    def restart(self) -> None:
        """kill -9 (if it is not dead already), then start again on the same port with the same data."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
        self._end()
        if not self._run():
            raise LabError(f"The embedded Kafka broker did not start again. The end of its log:\n{self.log_tail()}")

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    def jvm_log(self) -> str:
        """What its JVM says of its own stops."""
        return self._jvm_log.read_text(errors="replace") if self._jvm_log.exists() else ""

    def log_tail(self, lines: int = 15) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def _command(self, memory: list[str], *main: str) -> list[str]:
        classpath = os.pathsep.join(map(str, broker_jars()))
        return [self._java, *memory, *QUIET, "-cp", classpath, *main]

    @property
    def _settings(self) -> Path:
        return self._folder / "server.properties"

    def _try(self, port: int, controller_port: int) -> bool:
        here, controller = f"PLAINTEXT://{HOST}:{port}", f"{HOST}:{controller_port}"
        self._settings.write_text(
            as_properties(
                listeners=f"{here},CONTROLLER://{controller}",
                advertised_listeners=here,
                inter_broker_listener_name="PLAINTEXT",
                controller_quorum_voters=f"1@{controller}",
                log_dirs=str(self._folder / f"data-{port}"),
            )
        )
        small = ["-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        formatting = ("kafka.tools.StorageTool", "format", "-t", new_cluster_id(), "-c", str(self._settings))
        with self.log.open("ab") as log:
            subprocess.run(self._command(small, *formatting), stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        return self._run()

    def _run(self) -> bool:
        large = [*HEAP, "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", jvm_log.option(self._jvm_log)]
        started = False
        with self.log.open("ab") as log:
            said_before = log.tell()
            self._process = subprocess.Popen(
                self._command(large, "kafka.Kafka", str(self._settings)),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        try:
            janitor.kill_at_exit(self._process.pid)
            started = self._comes_up(self._process, said_before)
        finally:
            if not started:
                self._end()
        return started

    def _comes_up(self, process: subprocess.Popen, said_before: int) -> bool:
        """Its own word counts: whatever listens on its port could be somebody else."""
        deadline = time.monotonic() + START_SECONDS
        with self.log.open("rb") as log:
            log.seek(said_before)
            said = b""
            while STARTED.encode() not in said:
                if process.poll() is not None or time.monotonic() > deadline:
                    return False
                time.sleep(0.05)
                said += log.read()
        return process.poll() is None

    def _end(self) -> None:
        if self._process is not None:
            janitor.end_group(self._process.pid)
            self._process.wait()
            janitor.forget(self._process.pid)
            self._process = None


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


def _wanted_port() -> int | None:
    """The port that LAB_KAFKA_PORT names, if it does."""
    port = int(given("LAB_KAFKA_PORT") or 0)
    if port and not _is_free(port):
        raise LabError(
            f"Port {port} (LAB_KAFKA_PORT) is taken by another program. Choose another, "
            "or unset LAB_KAFKA_PORT to get a free one."
        )
    return port or None
