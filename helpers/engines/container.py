"""The official apache/kafka image under Testcontainers, published on loopback only."""

import os
import time
from uuid import uuid4

os.environ.setdefault("TC_POOLING_INTERVAL", "0.1")  # Testcontainers reads it when imported

from docker.errors import APIError, DockerException
from testcontainers.core.container import DockerContainer
from testcontainers.core.docker_client import DockerClient
from testcontainers.core.wait_strategies import LogMessageWaitStrategy

from helpers.engines import janitor
from helpers.errors import LabError, first_line

IMAGE = "apache/kafka:4.3.1"
PORT = 9092
SCRIPT = "/tmp/start-when-the-port-is-known.sh"
AGAIN, PID = "/tmp/start-the-broker-again", "/tmp/broker.pid"
START_SECONDS = 120
STARTED = "Kafka Server started"

SETTINGS = {
    "CLUSTER_ID": "4L6g3nShT-eMCtK--X86sw",
    "KAFKA_NODE_ID": "1",
    "KAFKA_PROCESS_ROLES": "broker,controller",
    "KAFKA_LISTENERS": f"PLAINTEXT://:{PORT},BROKER://:9093,CONTROLLER://:9094",
    "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "PLAINTEXT:PLAINTEXT,BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "KAFKA_INTER_BROKER_LISTENER_NAME": "BROKER",
    "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
    "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@localhost:9094",
    "KAFKA_AUTO_CREATE_TOPICS_ENABLE": "false",
    "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
    "KAFKA_OFFSETS_TOPIC_NUM_PARTITIONS": "1",
    "KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR": "1",
    "KAFKA_TRANSACTION_STATE_LOG_MIN_ISR": "1",
    "KAFKA_SHARE_COORDINATOR_STATE_TOPIC_REPLICATION_FACTOR": "1",
    "KAFKA_SHARE_COORDINATOR_STATE_TOPIC_MIN_ISR": "1",
    "KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS": "0",
    "KAFKA_HEAP_OPTS": "-Xms512m -Xmx512m",
}


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
        self.image = os.environ.get("LAB_KAFKA_IMAGE") or IMAGE
        self.bootstrap = ""
        self._label = f"lab.kafka={uuid4().hex}"
        self._container: DockerContainer | None = None

    def start(self) -> "ContainerBroker":
        janitor.remove_container_at_exit(self._label)
        name, value = self._label.split("=")
        # The broker must advertise the port that Docker chooses, so it waits for a script that names it.
        # It runs again after `restart`: within one container, because a restarted container gets another port.
        wait_for_script = f"while [ ! -s {SCRIPT} ]; do sleep 0.05; done; touch {AGAIN}"
        run_it = f"while rm {AGAIN} 2>/dev/null; do sh {SCRIPT} & echo $! > {PID}; wait $!; done"
        self._container = (
            DockerContainer(self.image)
            .with_envs(**SETTINGS)
            .with_kwargs(labels={name: value})
            .with_command(["sh", "-c", f"{wait_for_script}; {run_it}"])
        )
        self._container.ports[f"{PORT}/tcp"] = ("127.0.0.1",)
        try:
            self._container.start()
            self.bootstrap = f"127.0.0.1:{self._container.get_exposed_port(PORT)}"
            listeners = f"PLAINTEXT://{self.bootstrap},BROKER://localhost:9093"
            script = f"export KAFKA_ADVERTISED_LISTENERS={listeners}\nexec /etc/kafka/docker/run\n"
            self._container.copy_into_container(script.encode(), SCRIPT, 0o755)
            started = LogMessageWaitStrategy(STARTED)
            started.with_startup_timeout(START_SECONDS).wait_until_ready(self._container)
        except BaseException as problem:
            tail = self.log_tail()
            self.stop()
            if not isinstance(problem, Exception):
                raise  # Ctrl-C
            raise LabError(
                f"Docker answers, but the image {self.image} {_reason(problem)}. Set LAB_KAFKA_IMAGE to another image "
                f"of the same kind, or LAB_KAFKA=embedded to run a real broker without Docker. {tail}".strip()
            ) from problem
        return self

    def restart(self) -> None:
        """kill -9 inside the container, then start the broker again on the same port with the same data."""
        starts = self._starts()
        self._container.exec(["sh", "-c", f"touch {AGAIN}; kill -9 $(cat {PID})"])
        deadline = time.monotonic() + START_SECONDS
        while self._starts() == starts:
            if time.monotonic() > deadline:
                raise LabError(f"Kafka did not start again in its container. {self.log_tail()}")
            time.sleep(0.1)

    def _starts(self) -> int:
        return b"".join(self._container.get_logs()).count(STARTED.encode())

    def stop(self) -> None:
        if self._container is not None:
            self._container.stop()
            self._container = None

    def log_tail(self, lines: int = 10) -> str:
        """The end of the container's own log, if it came to life at all."""
        try:
            out, err = self._container.get_logs()
        except Exception:
            return ""
        last = (out + err).decode(errors="replace").splitlines()[-lines:]
        return "Its log ends:\n" + "\n".join(last) if last else ""


def _reason(problem: Exception) -> str:
    if isinstance(problem, APIError) and "/images/create" in str(problem):
        return "is not here and could not be pulled"
    return f"did not start ({first_line(problem)})"
