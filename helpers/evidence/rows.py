"""What a query wrote, row by row: for what it says about itself, such as its own idea of the time."""

import json

from confluent_kafka import Consumer, TopicPartition

from helpers.engines.kafka import QUIET, Kafka
from helpers.ruler.experiment import Query
from helpers.ruler.route import Route
from helpers.ruler.trace import Trace
from helpers.ruler.watch import Around, Watch


class Noting(Around):
    """A watch that knows the topics of the query that runs."""

    route: Route

    def of(self, query: Query) -> Query:
        """The same query: its topics are the ones to look at."""

        def noted(route: Route):
            self.route = route
            return query(route)

        return noted


class Kept(Noting):
    """Another watch, and at the run's end every result row: its JSON, and `appended_ms`, when the broker had it."""

    def __init__(self, kafka: Kafka, watch: Watch) -> None:
        super().__init__(watch)
        self.rows: list[dict] = []
        self._kafka = kafka

    def end(self, trace: Trace | None) -> None:
        if trace is not None:
            self.rows = _read(self._kafka, self.route.results)
        super().end(trace)


def _read(kafka: Kafka, topic: str) -> list[dict]:
    """All rows of a topic of one partition, as far as it goes now."""
    end = kafka.newest(topic)[0]
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": topic, "enable.auto.commit": False, **QUIET})
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        rows: list[dict] = []
        while len(rows) < end:
            for message in consumer.consume(end - len(rows), timeout=0.2):
                rows.append({**json.loads(message.value() or b"{}"), "appended_ms": message.timestamp()[1]})
        return rows
    finally:
        consumer.close()
