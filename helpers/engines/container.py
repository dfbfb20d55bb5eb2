"""The official apache/kafka image under Testcontainers, published on loopback only."""

import os
import time
from contextlib import suppress
from uuid import uuid4

os.environ.setdefault("TC_POOLING_INTERVAL", "0.1")  # Testcontainers reads it when imported

from docker.errors import APIError, DockerException, NotFound
from testcontainers.core.container import DockerContainer
from testcontainers.core.docker_client import DockerClient
from testcontainers.core.wait_strategies import LogMessageWaitStrategy

from helpers.engines import janitor, jvm_log
from helpers.engines.broker_settings import HEAP, STARTED, as_environment, new_cluster_id
from helpers.engines.jars import version_of
from helpers.errors import LabError, first_line
from helpers.settings import given

PORT = 9092
SCRIPT = "/tmp/start-when-the-port-is-known.sh"
AGAIN, KEEP, PID = "/tmp/start-the-broker-again", "/tmp/outlive-the-broker", "/tmp/broker.pid"
JVM_LOG = "/tmp/jvm.log"
START_SECONDS = 120


def default_image() -> str:
    """The same Kafka that the embedded broker runs from."""
    return f"apache/kafka:{version_of('kafka_2.13')}"


def engine_fault() -> str:
    """Why no Docker engine answers, in a few words; empty if one does."""
    try:
        DockerClient(timeout=5).client.ping()
    except (DockerException, OSError, ValueError) as problem:
        return first_line(problem)
    return ""


class ContainerBroker:
    """Start it, use `.bootstrap`, stop it."""

    def __init__(self) -> None:
        self.image = given("LAB_KAFKA_IMAGE") or default_image()
        self.bootstrap = ""
        self._label = f"lab.kafka={uuid4().hex}"
        self._container: DockerContainer | None = None

    def start(self) -> "ContainerBroker":
        janitor.remove_container_at_exit(self._label)
        name, value = self._label.split("=")
        self._container = container = (
            DockerContainer(self.image)
            .with_envs(**_environment())
            .with_kwargs(labels={name: value})
            .with_command(["sh", "-c", _command()])
        )
        container.ports[f"{PORT}/tcp"] = ("127.0.0.1",)
        try:
            container.start()
            self.bootstrap = f"127.0.0.1:{container.get_exposed_port(PORT)}"
            listeners = f"PLAINTEXT://{self.bootstrap},BROKER://localhost:9093"
            script = f"export KAFKA_ADVERTISED_LISTENERS={listeners}\nexec /etc/kafka/docker/run\n"
            container.copy_into_container(script.encode(), SCRIPT, 0o755)
            started = LogMessageWaitStrategy(STARTED)
            started.with_startup_timeout(START_SECONDS).wait_until_ready(container)
            container.exec(["touch", KEEP])
        except BaseException as problem:
            tail = self.log_tail()
            self.stop(interrupted=not isinstance(problem, Exception))
            if not isinstance(problem, Exception):
                raise  # Ctrl-C
            raise LabError(
                f"Docker answers, but the image {self.image} {_reason(problem)}. Set LAB_KAFKA_IMAGE to another image "
                f"of the same kind, or LAB_KAFKA=embedded to run a real broker without Docker. {tail}".strip()
            ) from problem
        return self

    def restart(self) -> None:
        """kill -9 (if it is not dead already), then start the broker again on the same port with the same data."""
        if self._container is None:
            raise LabError("This broker was stopped: start another.")
        starts = self._starts()
        self._container.exec(["sh", "-c", f"kill -9 $(cat {PID}); touch {AGAIN}"])
        deadline = time.monotonic() + START_SECONDS
        while self._starts() == starts:
            if time.monotonic() > deadline:
                raise LabError(f"Kafka did not start again in its container. {self.log_tail()}")
            time.sleep(0.1)

    def stop(self, interrupted: bool = False) -> None:
        """Remove the container. Where that fails, or one may still be on its way, the janitor sees to it at exit."""
        if self._container is None:
            return
        try:
            self._container.stop()
        except NotFound:
            pass  # somebody else was faster
        except (DockerException, OSError):
            interrupted = True  # Docker itself is gone
        self._container = None
        if not interrupted:
            janitor.forget_container(self._label)

    def jvm_log(self) -> str:
        """What its JVM says of its own stops; nothing if the container is gone."""
        with suppress(DockerException, OSError):
            if self._container is not None:
                return self._container.exec(["cat", JVM_LOG]).output.decode(errors="replace")
        return ""

    def log_tail(self, lines: int = 10) -> str:
        """The end of the container's own log, if it came to life at all."""
        try:
            last = self._log().splitlines()[-lines:]
        except Exception:
            return ""
        return "Its log ends:\n" + "\n".join(last) if last else ""

    def _starts(self) -> int:
        return self._log().count(STARTED)

    def _log(self) -> str:
        return b"".join(self._container.get_logs()).decode(errors="replace") if self._container else ""


def _environment() -> dict[str, str]:
    """The BROKER listener is for the broker itself: from inside, it cannot reach the port that Docker publishes."""
    settings = as_environment(
        listeners=f"PLAINTEXT://:{PORT},BROKER://:9093,CONTROLLER://:9094",
        inter_broker_listener_name="BROKER",
        controller_quorum_voters="1@localhost:9094",
    )
    java = {"KAFKA_HEAP_OPTS": " ".join(HEAP), "KAFKA_OPTS": jvm_log.option(JVM_LOG)}
    return settings | {"CLUSTER_ID": new_cluster_id()} | java


def _command() -> str:
    """The broker must advertise the port that Docker chooses, so it waits for a script that names it.

    It runs again after `restart`: within one container, because a restarted container gets another port. So once
    it has started well (KEEP), the container outlives it.
    """
    wait_for_script = f"while [ ! -s {SCRIPT} ]; do sleep 0.05; done; touch {AGAIN}"
    wait_for_restart = f"while [ -e {KEEP} ] && [ ! -e {AGAIN} ]; do sleep 0.1; done"
    run_it = f"sh {SCRIPT} & echo $! > {PID}; wait $!"
    return f"{wait_for_script}; while rm {AGAIN} 2>/dev/null; do {run_it}; {wait_for_restart}; done"


def _reason(problem: Exception) -> str:
    if isinstance(problem, APIError) and "/images/create" in str(problem):
        return "is not here and could not be pulled"
    return f"did not start ({first_line(problem)})"
