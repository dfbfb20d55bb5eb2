"""Where a query reads and writes: topics and a checkpoint folder of its own for every run."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from uuid import uuid4

from helpers.engines.kafka import UNUSABLE, Kafka
from helpers.engines.scratch import remove, run_dir


@dataclass(frozen=True)
class Route:
    """Where a query reads and writes: fresh for every run."""

    bootstrap: str
    events: str
    results: str
    checkpoint: str


@contextmanager
def fresh_route(kafka: Kafka, partitions: int = 1) -> Iterator[Route]:
    """Fresh topics and a fresh checkpoint folder; gone afterwards, the results topic a while later."""
    run = uuid4().hex[:8]
    route = Route(
        kafka.bootstrap,
        kafka.create_topic(f"events-{run}", partitions, append_time=True),
        kafka.create_topic(f"results-{run}", 1, append_time=True),
        str(run_dir() / f"checkpoint-{run}"),
    )
    try:
        yield route
    finally:
        remove(route.checkpoint)
        with suppress(*UNUSABLE):  # a broker that died has taken its topics along; what went wrong before is worth more
            kafka.delete_topics(route.events)
            kafka.retire_topic(route.results)
