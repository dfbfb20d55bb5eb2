"""`start_kafka()`: a real Kafka, whatever this machine has.

LAB_KAFKA chooses: `testcontainers`, `embedded`, `external`, or `auto` (default): the broker at
LAB_KAFKA_BOOTSTRAP if that is set, else a container if a Docker engine answers, else an embedded one.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol
from uuid import uuid4

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from kafka import KafkaAdminClient
from kafka.errors import KafkaError as AdminError

from helpers.engines import jvm_log
from helpers.errors import LabError, first_line
from helpers.settings import VARIABLES, given, kafka_backend

UNUSABLE = (AdminError, KafkaException, OSError, ValueError)  # what the two clients raise where no broker answers
RESTART_SECONDS = 90
FORGOTTEN_SECONDS = 6 * 60  # a Kafka producer forgets a topic that it has not written to for 5 minutes
QUIET = {"log_level": 0}  # librdkafka would print its own lines into a cell


class Broker(Protocol):
    """What an embedded broker and one in a container have in common."""

    bootstrap: str

    def restart(self) -> None: ...

    def jvm_log(self) -> str: ...

    def stop(self) -> None: ...


@dataclass
class Kafka:
    """A running broker: where it is, which kind it is, and topics on it."""

    bootstrap: str
    backend: str
    why: str
    seconds_to_start: float = 0.0
    broker: Broker | None = None  # None for an external one, and after `stop`
    _topics: set[str] = field(default_factory=set)
    _retired: dict[str, float] = field(default_factory=dict)  # topic: since when

    def create_topic(self, name: str, partitions: int = 1, append_time: bool = False) -> str:
        """A topic; with `append_time` the broker stamps each record when it is appended."""
        configs = {"message.timestamp.type": "LogAppendTime"} if append_time else {}
        with self.admin() as admin:
            admin.create_topics({name: {"num_partitions": partitions, "replication_factor": 1, "configs": configs}})
            self._topics.add(name)  # ours to remove from here on, whatever comes
            admin.wait_for_topics([name])
        return name

    def delete_topics(self, *names: str) -> None:
        with self.admin() as admin:
            admin.delete_topics(list(names), raise_errors=False)
        self._topics.difference_update(names)
        self._retired = {name: since for name, since in self._retired.items() if name not in names}

    def retire_topic(self, name: str) -> None:
        """Delete it later, when no producer knows it any more (at the latest when the broker is left).

        Spark keeps a query's Kafka producer and gives it to the next query with the same settings. Once it is five
        minutes old it looks all its topics up anew, and for one that is gone it asks again and again, about every
        second: meanwhile the next query's rows wait, for up to 200 ms.
        """
        now = time.monotonic()
        self._retired[name] = now
        old = [topic for topic, since in self._retired.items() if now - since > FORGOTTEN_SECONDS]
        if old:
            self.delete_topics(*old)

    def newest(self, topic: str, partitions: Iterable[int] = (0,)) -> dict[int, int]:
        """The offset that the next record of each partition will get."""
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": "newest", **QUIET})
        try:
            asked = {part: TopicPartition(topic, part) for part in partitions}
            return {part: consumer.get_watermark_offsets(at, timeout=10)[1] for part, at in asked.items()}
        finally:
            consumer.close()

    @property
    def pid(self) -> int | None:
        """The broker's process, where it is a child of this one."""
        return getattr(self.broker, "pid", None)

    def stops(self, since: float, until: float) -> list[jvm_log.Stop]:
        """When the broker's JVM stood still; nothing is known of one that is not ours."""
        return jvm_log.stops(self.broker.jvm_log(), since, until) if self.broker else []

    def restart(self) -> float:
        """kill -9 the broker and start it again; returns the seconds until it answered. Topics keep their records."""
        if self.backend == "external":
            print("This broker is not ours, so it is not restarted.")
            return 0.0
        if self.broker is None:
            raise LabError("Kafka was stopped. Run the set-up cell again: it starts a new one.")
        began = time.monotonic()
        self.broker.restart()
        while True:
            try:
                check_round_trip(self)
                return time.monotonic() - began
            except LabError:
                if time.monotonic() > began + RESTART_SECONDS:
                    raise

    @contextmanager
    def admin(self) -> Iterator[KafkaAdminClient]:
        client = KafkaAdminClient(bootstrap_servers=self.bootstrap, bootstrap_timeout_ms=10_000)
        try:
            yield client
        finally:
            client.close()

    def stop(self) -> None:
        """Stop the broker, or, where it is somebody else's, remove our topics. Safe to call twice, or if it died."""
        if self.broker is not None:
            self.broker.stop()
            self.broker = None
        elif self.backend == "external" and self._topics:
            ours = sorted(self._topics)
            self._topics.clear()
            try:
                self.delete_topics(*ours)
            except UNUSABLE:
                print(f"Kafka at {self.bootstrap} does not answer any more: {', '.join(ours)} may still be there.")

    def __enter__(self) -> "Kafka":
        return self

    def __exit__(self, *_) -> None:
        self.stop()


def start_kafka(backend: str | None = None, say: Callable[[str], object] = print) -> Kafka:
    """Start (or find) a broker, prove that it works, and say in one line which one it is and why."""
    backend = backend or kafka_backend()
    if backend not in _START:
        raise LabError(f"start_kafka({backend!r}): use {VARIABLES['LAB_KAFKA'].words}.")
    began = time.monotonic()
    kafka = _START[backend]()
    try:
        check_round_trip(kafka)
    except BaseException:
        kafka.stop()
        raise
    kafka.seconds_to_start = time.monotonic() - began
    say(f"Kafka: {kafka.backend} at {kafka.bootstrap} ({kafka.why})")
    return kafka


def check_round_trip(kafka: Kafka, seconds: float = 20) -> None:
    """Ready means: a record was produced and read back."""
    topic = f"lab-ready-{uuid4().hex[:8]}"
    try:
        kafka.create_topic(topic)
        _produce_and_read_back(kafka.bootstrap, topic, seconds)
        kafka.delete_topics(topic)
    except UNUSABLE as problem:
        raise LabError(
            f"Kafka at {kafka.bootstrap} cannot be used: {first_line(problem)}. Check that a broker listens there, "
            "that it advertises an address this machine can reach, and that topics may be created on it."
        ) from problem


def _produce_and_read_back(bootstrap: str, topic: str, seconds: float) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, **QUIET})
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": topic, "enable.auto.commit": False, **QUIET})
    try:
        producer.produce(topic, b"ready?")
        consumer.assign([TopicPartition(topic, 0, 0)])
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            producer.poll(0)
            message = consumer.poll(0.1)
            if message is not None and not message.error():
                return
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
    finally:
        producer.purge()
        consumer.close()


def _auto() -> Kafka:
    from helpers.engines.container import engine_fault

    if engine_fault():
        return _embedded("no Docker engine answers")
    try:
        return _testcontainers("a Docker engine answers")
    except LabError as problem:
        return _embedded(f"no container: {first_line(problem)}")


def _testcontainers(why: str = "LAB_KAFKA=testcontainers") -> Kafka:
    from helpers.engines.container import ContainerBroker, engine_fault

    fault = engine_fault()
    if fault:
        raise LabError(
            f"LAB_KAFKA=testcontainers, but no Docker engine answers ({fault}). Start Docker, "
            "or set LAB_KAFKA=embedded to run a real broker without it."
        )
    broker = ContainerBroker().start()
    return Kafka(broker.bootstrap, "testcontainers", f"{why}; image {broker.image}", broker=broker)


def _embedded(why: str = "LAB_KAFKA=embedded") -> Kafka:
    from helpers.engines.embedded import EmbeddedBroker

    broker = EmbeddedBroker().start()
    return Kafka(broker.bootstrap, "embedded", why, broker=broker)


def _external() -> Kafka:
    bootstrap = given("LAB_KAFKA_BOOTSTRAP")
    if not bootstrap:
        raise LabError("LAB_KAFKA=external needs LAB_KAFKA_BOOTSTRAP, for example LAB_KAFKA_BOOTSTRAP=localhost:9092.")
    return Kafka(bootstrap, "external", "LAB_KAFKA_BOOTSTRAP")


_START = {"auto": _auto, "testcontainers": _testcontainers, "embedded": _embedded, "external": _external}
