"""How our broker is set up, as a child process or in a container: one dictionary, two ways to write it."""

import base64
from uuid import uuid4

HEAP = ["-Xms512m", "-Xmx512m"]
STARTED = "Kafka Server started"  # what it logs once it listens

SETTINGS = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "num.partitions": "1",
    "auto.create.topics.enable": "false",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
}


def as_properties(**own: str) -> str:
    """The text of a server.properties. A broker's own settings have a _ where Kafka has a dot."""
    return "".join(f"{name}={value}\n" for name, value in _with(own).items())


def as_environment(**own: str) -> dict[str, str]:
    """The same as variables, which the official image turns into a server.properties."""
    return {f"KAFKA_{name.replace('.', '_').upper()}": value for name, value in _with(own).items()}


def new_cluster_id() -> str:
    """Sixteen random bytes in base64: no two brokers are mistaken for one another."""
    name = base64.urlsafe_b64encode(uuid4().bytes).decode().rstrip("=")
    return new_cluster_id() if name.startswith("-") else name  # the formatter would take it for an option


def _with(own: dict[str, str]) -> dict[str, str]:
    return SETTINGS | {name.replace("_", "."): value for name, value in own.items()}
