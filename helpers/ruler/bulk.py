"""Many events at once: to give a query its state before it is measured, and to see how fast it can go at all."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import psutil
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from helpers.engines.kafka import QUIET, Kafka
from helpers.engines.spark import jvm_pid
from helpers.errors import LabError, explain, first_line
from helpers.ruler.cost import cpu_seconds
from helpers.ruler.load import Load
from helpers.ruler.route import Route

LOOK_SECONDS = 0.1
TAKEN_SECONDS = 60
FASTEST = {"linger.ms": 50, "acks": 1, "message.timeout.ms": 1_000 * TAKEN_SECONDS, **QUIET}
START, END = 0.2, 0.9  # what is looked at of a drain: not its start, not its last tasks
PATIENCE_SECONDS = 120


@dataclass(frozen=True)
class Drained:
    """How fast a query worked off what was there when it started."""

    name: str
    at: np.ndarray  # seconds
    rows: np.ndarray  # written until then
    cpu: np.ndarray  # seconds of Spark's processor time until then

    @property
    def events_per_second(self) -> float:
        return self._per(self.at) ** -1

    @property
    def cpu_per_million(self) -> float:
        """Seconds of Spark's processor time for a million events."""
        return self._per(self.cpu) * 1e6

    def _per(self, what: np.ndarray) -> float:
        """So much of it for each row, in the middle of the drain."""
        begin, end = (np.interp(share * self.rows[-1], self.rows, what) for share in (START, END))
        return float(end - begin) / ((END - START) * self.rows[-1])


def fill(kafka: Kafka, topic: str, events: int, keys: int, payload: int = Load.payload) -> None:
    """So many events, as fast as one process can, each key in its turn."""
    refused: list[object] = []

    def delivered(error, _message) -> None:
        if error is not None:
            refused.append(error)

    producer = Producer({"bootstrap.servers": kafka.bootstrap, "on_delivery": delivered, **FASTEST})
    stuff = "x" * payload
    for number in range(events):
        value = f'{{"event_id": "fill-{number}", "event_time": 0, "payload": "{stuff}"}}'
        while True:
            try:
                producer.produce(topic, key=b"k%d" % (number % keys), value=value)
                break
            except BufferError:  # as many are on their way as it takes
                producer.poll(0.1)
        if refused:
            break
        if number % 1_000 == 0:
            producer.poll(0)
    if producer.flush(TAKEN_SECONDS) or refused:
        raise LabError(f"The broker did not take {events:,} events: does it still run? Run the set-up cell again.")


def drain(kafka: Kafka, route: Route, events: int, active: Callable[[], BaseException | None], name: str) -> Drained:
    """Wait until the results topic has so many rows, and note how many it had when. `active` says what went wrong."""
    process, seen = psutil.Process(jvm_pid()), []
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": "drain", **QUIET})
    last, deadline = 0, time.monotonic() + PATIENCE_SECONDS
    try:
        while last < events:
            rows = consumer.get_watermark_offsets(TopicPartition(route.results, 0), timeout=10)[1]
            seen.append((time.monotonic(), rows, cpu_seconds(process)))
            if rows > last:
                last, deadline = rows, time.monotonic() + PATIENCE_SECONDS
            if (problem := active()) is not None:
                raise LabError(explain(problem))
            if time.monotonic() > deadline:
                raise LabError(
                    f"{name}: {last:,} rows of {events:,} came, and no more for {PATIENCE_SECONDS} s. Does the query "
                    "read from the earliest offset, and write a row for every event?"
                )
            time.sleep(LOOK_SECONDS)
    except KafkaException as problem:
        raise LabError(f"Kafka does not answer: {first_line(problem)}. Run the set-up cell again.") from problem
    finally:
        consumer.close()
    at, rows, cpu = (np.array(column, float) for column in zip(*seen, strict=True))
    return Drained(name, at - at[0], rows, cpu)
