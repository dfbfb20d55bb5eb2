"""How far each partition of a topic was read: Spark's own offsets beside Kafka's."""

import json
import time
from dataclasses import dataclass

from confluent_kafka import Producer
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from helpers.engines.kafka import QUIET, Kafka
from helpers.errors import LabError, explain
from helpers.ruler.experiment import Setup, running

SECONDS, RATE = 3, 100  # of sending: so many events a second to each partition
INTERVALS = 2  # that begin and end after the last event: who has not read it by then never will
PATIENCE = 90.0


@dataclass(frozen=True)
class Coverage:
    """Offsets by partition: Kafka's newest, and what the query's first and last progress report said."""

    name: str
    newest: dict[int, int]
    first: dict[int, int]
    last: dict[int, int]
    slots: int
    active: bool  # the query runs: Spark has nothing to say against it

    @property
    def unread(self) -> list[int]:
        """The partitions that have news for this query, and whose offset did not move in any report."""
        return [part for part, end in self.newest.items() if self.first[part] == self.last[part] < end]

    @property
    def complete(self) -> bool:
        return self.newest == self.last

    def __str__(self) -> str:
        said = f"; never partition {', '.join(map(str, self.unread))}" if self.unread else ""
        return f"{sum(self.last.values()):,} of {sum(self.newest.values()):,} events read{said}"


def of(kafka: Kafka, query: StreamingQuery, name: str = "your query") -> Coverage:
    """How far a running query of yours has read the topic of its first source. It needs two reports, or more."""
    if len(query.recentProgress) < 2:
        raise LabError("This query has not made two progress reports yet: wait for two intervals to end.")
    slots = query._jsq.sparkSession().sparkContext().defaultParallelism()
    reports = [json.loads(report.sources[0].endOffset) for report in query.recentProgress]
    topic = next(iter(reports[-1]))
    first, last = ({int(part): at for part, at in reports[which][topic].items()} for which in (0, -1))
    return Coverage(name, kafka.newest(topic, sorted(last)), first, last, slots, query.isActive)


def cover(spark: SparkSession, kafka: Kafka, setup: Setup) -> Coverage:
    """Run a query, send every partition of its topic the same number of events, and see which were read.

    Sending begins when the first interval has ended (a cold start may miss all of it). Looking ends when all is read,
    or when INTERVALS whole ones more have ended: an interval that began after the last event had a chance to read it.
    """
    with running(spark, kafka, setup) as (route, query):
        wait_for_reports(query, 1)
        _send(kafka, route.events, setup.partitions)
        sent, found = len(query.recentProgress), None
        while found is None or (not found.complete and len(query.recentProgress) <= sent + INTERVALS):
            wait_for_reports(query, len(query.recentProgress) + 1)
            found = of(kafka, query, setup.name)
        return found


def _send(kafka: Kafka, topic: str, partitions: int) -> None:
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "linger.ms": 1, **QUIET})
    for number in range(SECONDS * RATE):
        for part in range(partitions):
            producer.produce(topic, json.dumps({"event_id": str(number)}), f"k{part}", part)
        producer.poll(0)
        time.sleep(1 / RATE)
    if producer.flush(10):
        raise LabError(f"Kafka at {kafka.bootstrap} did not take all events.")


def wait_for_reports(query: StreamingQuery, how_many: int) -> None:
    """Until so many intervals have ended and Spark has reported on them."""
    deadline = time.monotonic() + PATIENCE
    while len(query.recentProgress) < how_many:
        if not query.isActive:
            raise LabError(explain(query.exception()))
        if time.monotonic() > deadline:
            raise LabError(f"No interval ended within {PATIENCE:.0f} s: choose a shorter one.")
        time.sleep(0.2)
