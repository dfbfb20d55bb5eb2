"""How far a query is behind, from Kafka's own offsets: Spark reports only when an interval has ended."""

import threading
import time
from contextlib import suppress
from dataclasses import dataclass

from confluent_kafka import Consumer, KafkaException, TopicPartition

from helpers.engines.kafka import QUIET, Kafka
from helpers.evidence.rows import Noting
from helpers.ruler.load import Load
from helpers.ruler.trace import Trace
from helpers.ruler.watch import Watch

LOOK_SECONDS = 0.25


@dataclass(frozen=True)
class Seen:
    """One look: how many events and how many result rows Kafka had at `at` (measured seconds)."""

    at: float
    events: int
    results: int

    @property
    def lag(self) -> int:
        """Events without a result; for a query that writes a row for each event."""
        return self.events - self.results


class Lag(Noting):
    """Another watch, and four times a second what Kafka has of events and of results.

    In a thread of its own: whoever asks Spark has to wait while Spark stands still.
    """

    def __init__(self, kafka: Kafka, watch: Watch) -> None:
        super().__init__(watch)
        self._kafka, self._over = kafka, threading.Event()
        self._looks: list[tuple[float, int, int]] = []
        self.seen: list[Seen] = []

    def begin(self, setup_name: str, load: Load) -> None:
        self._over.clear()  # a run may be made again
        self._looks = []
        self._thread = threading.Thread(target=self._watch_offsets, daemon=True)
        self._thread.start()
        super().begin(setup_name, load)

    def end(self, trace: Trace | None) -> None:
        self._over.set()
        self._thread.join()
        if trace is not None:
            begin, end = trace.rounds[0]["measure_from"], trace.rounds[0]["measure_to"]
            self.seen = [Seen(at - begin, *counts) for at, *counts in self._looks if begin <= at < end]
        super().end(trace)

    def _watch_offsets(self) -> None:
        consumer = Consumer({"bootstrap.servers": self._kafka.bootstrap, "group.id": "lag", **QUIET})
        topics = TopicPartition(self.route.results, 0), TopicPartition(self.route.events, 0)
        while not self._over.wait(LOOK_SECONDS):
            with suppress(KafkaException):  # it did not answer this time
                # the results first: an event in between must not make a negative lag
                results, events = (consumer.get_watermark_offsets(topic, timeout=10)[1] for topic in topics)
                self._looks.append((time.time(), events, results))
        consumer.close()
