"""Crash a streaming query on purpose, restart it from its checkpoint, and count what came out of it.

A `Pipeline` sends numbered events at a steady rate and keeps every result row, while the query between
the two topics is killed and restarted as often as you like. What was sent is known, so what is missing
and what came twice can be counted.
"""

import json
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace

from confluent_kafka import Consumer, Producer, TopicPartition
from pyspark.sql.streaming import StreamingQuery

from helpers.engines.kafka import QUIET, Kafka
from helpers.engines.scratch import remove
from helpers.errors import LabError, explain, first_line
from helpers.evidence.checkpoint import Checkpoint, last_checkpoint
from helpers.evidence.crashes import Crash, Row, measured, uncovered
from helpers.faults.victim import SparkQuery, Understudy, Victim
from helpers.ruler.ledger import Ledger
from helpers.ruler.route import fresh_route

CHECKPOINT_SECONDS = 120  # how long we wait for one
CATCH_UP_SECONDS = 120
MANY_BATCHES = 20
READ_LAG = 0.03  # seconds: a row that is read this long after a commit is not of the batch before it


class Pipeline:
    """Events in, results out, and a query between them that may die at any moment.

    Every event has a number (`event_id`) and one of `keys` keys. With `twice=n` every n-th event is sent
    two times, as a producer does that got no answer and tries again.
    """

    def __init__(
        self, kafka: Kafka, query: SparkQuery, understudy: Understudy, rate: int = 250, keys: int = 20, twice: int = 0
    ) -> None:
        if not 1 <= rate <= 2_000 or not 1 <= keys <= 10_000 or twice < 0:
            raise LabError(
                f"rate={rate}, keys={keys}, twice={twice}: send 1 to 2,000 events per second over 1 to 10,000 keys, "
                "and every n-th event twice (0: none)."
            )
        self.rate, self.keys, self.twice = rate, keys, twice
        self.sent_at: list[float] = []  # of every event; an event that is sent twice counts once
        self.records = 0
        self.rows: list[Row] = []
        self._kafka, self._query, self._understudy = kafka, query, understudy
        self._victim: Victim | None = None
        self._yours: StreamingQuery | None = None
        self._trigger: dict[str, str] = {}
        self._live = 0.0  # since when the running query keeps up
        self._kills: list[tuple[Crash, int]] = []  # and how many rows there were
        self._fault = ""
        self._ledger = Ledger()
        self._sending, self._over = threading.Event(), threading.Event()
        self._open = ExitStack()
        self.route = self._open.enter_context(fresh_route(kafka))
        self._threads = [
            threading.Thread(target=self._guard, args=(work,), daemon=True) for work in (self._send, self._collect)
        ]
        for thread in self._threads:
            thread.start()

    # -- the query lives and dies

    def start(self, trigger: dict[str, str], catch_up: bool = True) -> None:
        """Start the query in a fresh process, from the checkpoint if there is one, and wait until it keeps up.

        If it still runs, it is killed first, right after its next checkpoint.
        """
        if self._victim is not None:
            self.kill(after=0)
        victim = self._understudy.take()
        victim.run(self._query, self.route, trigger)
        self._victim, self._trigger = victim, trigger
        self._sending.set()
        self._understudy.prepare()
        if catch_up:
            self.catch_up()

    def redeploy(self, query: SparkQuery) -> None:
        """From the next start on run this query, with a fresh checkpoint folder: the old one is left alone."""
        if self._victim is not None:
            raise LabError("The old query still runs: stop() it first.")
        self._query = query
        fresh = f"{self.route.checkpoint}-next"
        self.route = replace(self.route, checkpoint=fresh)
        self._open.callback(remove, fresh)

    def refusal(self, trigger: dict[str, str]) -> str:
        """What Spark says against going on from this checkpoint under this trigger; empty if the query runs."""
        try:
            self.start(trigger)
        except LabError as said:
            return str(said)
        return ""

    def feed(self, query: StreamingQuery) -> None:
        """Begin to send, and wait until results come from a query that you started yourself."""
        self._yours = query
        self._sending.set()
        self.catch_up()
        self._yours = None  # from here on it may end

    def catch_up(self) -> None:
        """Wait until all that was sent by now has come out, and then all that was sent meanwhile."""
        for _ in range(2):
            target = max(1, self.sent)
            self._wait(lambda target=target: self.accounted >= target, CATCH_UP_SECONDS, "the query did not catch up")
        self._live = time.time()

    def kill(self, after: float | None = None) -> Crash:
        """kill -9: this instant, or when a checkpoint is `after` seconds old and rows have come out since."""
        return self._end("kill -9", Victim.kill, after)

    def stop(self, after: float | None = None) -> Crash:
        """query.stop(), as a deploy does, at the moment that `kill` would choose. Recorded like a crash."""
        return self._end("stop()", Victim.stop, after)

    def wait_for_checkpoint(self, after: float) -> None:
        """Until a checkpoint has been completed since the query keeps up, the newest is `after` seconds old, and
        (unless `after` is 0) rows have come out since: in micro-batch they come just before the next commit.

        On a fast machine no micro-batch's checkpoint gets that old: then rows are enough.
        """
        begun = last_checkpoint(self.route.checkpoint)

        def old_enough() -> bool:
            last = last_checkpoint(self.route.checkpoint)
            if last is None or last.at <= self._live:
                return False
            in_vain = begun is not None and last.batch - begun.batch >= MANY_BATCHES
            if time.time() - last.at < after and not in_vain:
                return False
            return after == 0 or self.rows[-1].at > last.at + READ_LAG

        self._wait(old_enough, CHECKPOINT_SECONDS + after, "no checkpoint was completed", 0.005)

    def finish(self) -> None:
        """Send no more, wait until everything has come out and a moment longer, end the query."""
        self._sending.clear()
        self._wait(lambda: self.accounted >= self.sent, CATCH_UP_SECONDS, "not every event came out")
        time.sleep(0.5)
        self._end_query()
        self._read_to_the_end()

    def close(self) -> None:
        """End everything and remove the topics and the checkpoint. Safe to call twice."""
        self._over.set()
        self._end_query()
        for thread in self._threads:
            thread.join()
        self._open.close()

    # -- what is known

    @property
    def sent(self) -> int:
        return len(self.sent_at)

    @property
    def truth(self) -> dict[str, int]:
        """How many events each key really had."""
        return dict(Counter(self._key(event) for event in range(self.sent)))

    @property
    def accounted(self) -> int:
        """Events that the results account for, by the ledger's rule."""
        return self.sent - len(self._ledger.out)

    @property
    def crashes(self) -> list[Crash]:
        """Every kill so far, with what was repeated after it (and before the next)."""
        ends = [rows for _, rows in self._kills[1:]] + [len(self.rows)]
        return [measured(crash, self.rows[rows:end]) for (crash, rows), end in zip(self._kills, ends, strict=True)]

    # -- inside

    def _end(self, how: str, end: Callable[[Victim], None], after: float | None) -> Crash:
        if self._victim is None:
            raise LabError("No query runs: start it first.")
        if after is not None:
            self.wait_for_checkpoint(after)
        at, records = time.time(), self.records
        victim, self._victim = self._victim, None
        end(victim)
        last = last_checkpoint(self.route.checkpoint) or Checkpoint(-1, self._live, 0)  # nobody writes there any more
        crash = Crash(self._trigger, at, max(0.0, at - last.at), last.end, records - last.end, how=how)
        self._read_to_the_end()
        crash = replace(crash, uncovered=uncovered(self.rows, last.end))
        self._kills.append((crash, len(self.rows)))
        return crash

    def _key(self, event: int) -> str:
        return f"k{event * 7919 % self.keys}"

    def _end_query(self) -> None:
        if self._victim is not None:
            self._victim.kill()
            self._victim = None

    def _check_query(self) -> None:
        """Raise, and end what is left of it, if the query died by itself."""
        if self._yours is not None and not self._yours.isActive:
            raise LabError(explain(self._yours.exception()))
        try:
            if self._victim is not None:
                self._victim.check()
        except LabError:
            self._end_query()
            raise

    def _read_to_the_end(self) -> None:
        """Until every row that is in the results topic has been read."""
        time.sleep(0.1)  # what was on its way to the broker is there now
        [end] = self._kafka.newest(self.route.results).values()
        self._wait(lambda: len(self.rows) >= end, 20, "the results could not be read")

    def _wait(self, done: Callable[[], bool], seconds: float, otherwise: str, step: float = 0.05) -> None:
        deadline = time.monotonic() + seconds
        while not done():
            if self._fault:
                raise LabError(self._fault)
            self._check_query()
            if time.monotonic() > deadline:
                raise LabError(
                    f"Within {seconds:.0f} s {otherwise} ({self.accounted:,} of {self.sent:,} events are back). "
                    "Does the query read the events topic from the earliest offset and write to the results topic?"
                )
            time.sleep(step)

    def _guard(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as problem:
            self._fault = f"The load or the reader stopped: {first_line(problem)}."

    def _send(self) -> None:
        settings = {"bootstrap.servers": self.route.bootstrap, "enable.idempotence": True, "linger.ms": 1, **QUIET}
        producer = Producer(settings)  # idempotent: its own retries repeat nothing
        while not self._over.is_set():
            due = time.monotonic()
            while self._sending.is_set() and not self._over.is_set():
                while due <= time.monotonic():
                    self._send_next(producer)
                    due += 1 / self.rate
                producer.poll(0)
                time.sleep(0.002)
            producer.flush(1)
            self._sending.wait(0.1)
        producer.purge()

    def _send_next(self, producer: Producer) -> None:
        event = self.sent
        key = self._key(event)
        self._ledger.sent(event, key.encode())
        for _ in range(2 if self.twice and event % self.twice == 0 else 1):
            while not self._produced(producer, key, event):  # its queue is full: the broker is away for long
                producer.poll(0.1)
                if self._over.is_set():
                    return
            self.records += 1
        self.sent_at.append(time.time())

    def _produced(self, producer: Producer, key: str, event: int) -> bool:
        try:
            producer.produce(self.route.events, json.dumps({"event_id": event}), key)
        except BufferError:
            return False
        return True

    def _collect(self) -> None:
        group = {"group.id": self.route.results, "enable.auto.commit": False}
        consumer = Consumer({"bootstrap.servers": self.route.bootstrap, "fetch.wait.max.ms": 50, **group, **QUIET})
        consumer.assign([TopicPartition(self.route.results, 0, 0)])
        while not self._over.is_set():
            message = consumer.poll(0.1)
            if message is not None and not message.error():
                self._take((message.key() or b"").decode(), (message.value() or b"null").decode())
        consumer.close()

    def _take(self, key: str, value: str) -> None:
        new = self._ledger.returned(key.encode(), json.loads(value))
        self.rows.append(Row(key, value, time.time(), again=not new))
