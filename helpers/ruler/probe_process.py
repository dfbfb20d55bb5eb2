"""The probe's own process: `python -m helpers.ruler.probe_process`, started by `helpers.ruler.probe.Probe`.

It reads its settings as one JSON line from stdin and then watches that pipe, so it ends when its
parent does. It answers on stdout in frames: one JSON line, and behind a "samples" line the samples
themselves as raw bytes.
"""

import json
import os
import queue
import sys
import threading
import time
from collections.abc import Callable
from functools import partial

import numpy as np

from helpers.errors import LabError
from helpers.ruler.ledger import Ledger
from helpers.ruler.load import KEY_CYCLE, SAMPLE, Load, pick_keys

STREAM_SECONDS = 0.25
CHECK_SECONDS = 0.05  # how often the sender looks up from its work, however far behind it is
LATE_SECONDS = 0.020  # a send this far behind its schedule counts as late
QUEUE_KB = 131_072  # what waits for the broker must not eat the memory
SHORTEST_SLEEP = 0.0002
STATS_MS = 250
HALF_A_STEP = 0.0005  # the broker's clock counts whole milliseconds, rounded down
LAZY = {"fetch.min.bytes": 65_536}  # the broker has stamped the results: reading them at leisure disturbs less


class Run:
    """One run: the main thread sends, one thread collects, one streams samples to the parent."""

    def __init__(
        self, bootstrap: str, events: str, results: str, load: dict, clock: str = "appended", skip: int = 0
    ) -> None:
        self.bootstrap, self.events, self.results, self.clock = bootstrap, events, results, clock
        self.skip = skip  # results that are there already, in each partition
        self.load = Load(**load)
        self.id = os.urandom(4).hex()
        self.ledger = Ledger()
        self.phase = "waiting for the first result"
        self.start = time.time() + 0.5  # event 0 is due then
        self.measure_from: float | None = None  # known once the first result is back
        self.sent = self.late = 0
        self.worst_slip = self.standstill = self.clock_step = self.collector_cpu = 0.0
        self.taken_at = self.start  # when the broker last took an event
        self.fault = ""
        self.stats = "{}"  # librdkafka's newest report about itself
        self._clocks = time.time() - time.monotonic()
        self._fresh: queue.SimpleQueue = queue.SimpleQueue()
        self._unacknowledged: list[tuple] = []  # results that were faster than the broker's word that it has the event
        self._sent_at: dict[int, float] = {}
        self._taken: dict[int, tuple[float, int]] = {}  # when the broker had it, and in which partition
        self._over = threading.Event()

    def run(self) -> dict:
        threads = [threading.Thread(target=work) for work in (self.collect, self.stream)]
        for thread in threads:
            thread.start()
        try:
            cost = self.send()
            self.drain()
        finally:
            self._over.set()
            for thread in threads:
                thread.join()
        self.emit()
        assert self.measure_from is not None  # else `send` has raised
        return {
            "kind": "summary",
            "start": self.start,
            "measure_from": self.measure_from,
            "measure_to": self.measure_from + self.load.seconds,
            "sent": self.sent,
            "rows": self.ledger.rows,
            "lost": len(self.ledger.out),
            "duplicated": self.ledger.duplicated,
            "overcounted": self.ledger.overcounted,
            "send_errors": self.ledger.unsent,
            "late_share": self.late / self.sent,
            "worst_slip_ms": self.worst_slip * 1000,
            "standstill_ms": self.standstill * 1000,
            "clock_step_ms": self.clock_step * 1000,
            **cost,
        }

    # -- sending

    def send(self) -> dict:
        """Send each event when it is due, until the measured time is over. Returns what it cost."""
        send, poll, flush = self.producer()
        keys = pick_keys(self.load, KEY_CYCLE).tolist()
        names = [b"k%d" % key for key in range(self.load.keys)]
        event = f'{{"event_id": "{self.id}-%d", "event_time": %d, "payload": "{"x" * self.load.payload}"}}'
        meter: dict[str, float] | None = None
        before, checked = time.time(), 0.0
        if self.load.pacing == "sleep":
            time.sleep(max(0.0, self.start - before))
        behind = self.load.pacing != "schedule"  # by what the first result took: that is not to be made up for
        while True:
            if behind and self.measure_from is not None:
                self.start, behind = time.time() - self.load.due(self.sent), False
            due = self.start + self.load.due(self.sent)
            if self.measure_from is not None:
                if due >= self.measure_from + self.load.seconds:
                    break
                if meter is None and due >= self.measure_from:
                    meter = self.meter()
                self.phase = "warming up" if meter is None else "measuring"
            now = time.time()
            self.standstill, before = max(self.standstill, now - before), now
            closed = self.load.pacing == "answer" and self.ledger.out
            if (due > now and self.load.pacing != "sleep") or closed or now > checked + CHECK_SECONDS:
                checked = now
                poll()
                self.check(now, due)
                if closed:
                    time.sleep(SHORTEST_SLEEP)
                    continue
                if due > now and self.load.pacing != "sleep":
                    time.sleep(max(0.0, min(due - time.time(), 0.005)))
                    continue
            self.late += now - due > LATE_SECONDS
            self.worst_slip = max(self.worst_slip, now - due)
            key = names[keys[self.sent % KEY_CYCLE]]
            self.ledger.sent(self.sent, key)
            self._sent_at[self.sent] = now
            value = (event % (self.sent, due * 1000)).encode()
            while not send(self.sent, key, value):  # its queue is full: the broker is slower than the schedule
                poll(0.01)
                self.check(time.time(), due)
            self.sent += 1
            if self.load.pacing == "sleep":
                time.sleep(1 / self.load.rate)
        assert meter is not None
        cost = {name: (self.meter()[name] - meter[name]) for name in meter}
        flush()
        return {
            "producer_core_share": (cost["process"] - cost["collector"]) / cost["wall"],
            "probe_core_share": cost["process"] / cost["wall"],
            "producer_requests": cost["requests"] / cost["wall"],
        }

    def check(self, now: float, due: float) -> None:
        """Raise, with a sentence, if going on makes no sense. Also: has somebody set the clock?"""
        self.clock_step = max(self.clock_step, abs(now - time.monotonic() - self._clocks))
        if self.fault:
            raise LabError(self.fault)
        if self.sent and now > self.taken_at + self.load.patience:
            raise LabError(
                f"The broker has taken no event for {self.load.patience:.0f} s: does it still run? "
                "Run the set-up cell again: it starts a new one."
            )
        if self.measure_from is None and now > self.start + self.load.patience:
            raise LabError(
                f"No result came back within {self.load.patience:.0f} s, although {self.sent:,} events were sent. "
                "Does the query read the events topic from the earliest offset and write to the results topic?"
            )
        if now > due + self.load.patience:
            raise LabError(
                f"The sender is {now - due:.0f} s behind its schedule: this machine cannot send {self.load.rate:,} "
                "events of this size per second. Choose a lower rate."
            )

    def drain(self) -> None:
        """Wait for the last results, and a moment for a duplicate behind them."""
        self.phase = "draining"
        deadline = time.time() + self.load.drain
        while self.ledger.out and time.time() < deadline and not self.fault:
            time.sleep(0.05)
        time.sleep(0.3)
        if self.fault:
            raise LabError(self.fault)

    def meter(self) -> dict[str, float]:
        used = {"wall": time.time(), "process": time.process_time(), "collector": self.collector_cpu}
        brokers = json.loads(self.stats).get("brokers", {}).values()
        return used | {"requests": sum(broker.get("req", {}).get("Produce", 0) for broker in brokers)}

    def producer(self) -> tuple[Callable, Callable, Callable]:
        """(send, poll, flush) of the chosen client, with the same settings for both. `send` is False: try again."""
        return self.kafka_python() if self.load.client == "kafka-python" else self.confluent()

    def confluent(self) -> tuple[Callable, Callable, Callable]:
        from confluent_kafka import Producer

        settings = {"bootstrap.servers": self.bootstrap, "linger.ms": self.load.linger_ms, "acks": 1}
        settings |= {"queue.buffering.max.kbytes": QUEUE_KB, "log_level": 0}
        producer = Producer(settings | {"stats_cb": self.reported, "statistics.interval.ms": STATS_MS})

        def send(event: int, key: bytes, value: bytes) -> bool:
            try:
                producer.produce(self.events, key=key, value=value, on_delivery=partial(self.delivered, event))
            except BufferError:
                return False
            return True

        return send, lambda seconds=0: producer.poll(seconds), lambda: producer.flush(30)

    def kafka_python(self) -> tuple[Callable, Callable, Callable]:
        from kafka import KafkaProducer
        from kafka.errors import KafkaError

        producer = KafkaProducer(bootstrap_servers=self.bootstrap, linger_ms=int(self.load.linger_ms), acks=1)

        def send(event: int, key: bytes, value: bytes) -> bool:
            try:
                future = producer.send(self.events, key=key, value=value)
            except KafkaError:  # no place in its buffer for a minute, or no metadata
                self.ledger.failed(event, key)
                return True
            future.add_callback(lambda record: self.taken(event, record.timestamp, record.partition)).add_errback(
                lambda _: self.ledger.failed(event, key)
            )
            return True

        return send, lambda _seconds=0: None, lambda: producer.flush(30)

    def delivered(self, event: int, error, message) -> None:
        if error is None:
            self.taken(event, message.timestamp()[1], message.partition())
        else:
            self.ledger.failed(event, message.key())

    def taken(self, event: int, milliseconds: int, partition: int) -> None:
        self._taken[event] = (milliseconds / 1000 + HALF_A_STEP, partition)
        self.taken_at = time.time()

    def reported(self, stats: str) -> None:
        self.stats = stats

    # -- collecting

    def collect(self) -> None:
        try:
            self.read_results()
        except LabError as problem:
            self.fault = str(problem)
        except Exception as problem:
            self.fault = f"The probe could not read the results topic: {problem}"

    def read_results(self) -> None:
        from confluent_kafka import Consumer, TopicPartition

        settings = {"bootstrap.servers": self.bootstrap, "group.id": f"probe-{self.id}", "log_level": 0}
        if self.clock == "appended" and self.load.pacing == "schedule":
            settings |= LAZY
        consumer = Consumer(settings | {"enable.auto.commit": False, "fetch.wait.max.ms": 100})
        topic = consumer.list_topics(self.results, timeout=10).topics[self.results]
        consumer.assign([TopicPartition(self.results, partition, self.skip) for partition in topic.partitions])
        while not self._over.is_set():
            message = consumer.poll(0.1)  # returns with the first message: no artificial wait
            if message is not None and not message.error():
                self.take(message)
            self.collector_cpu = time.thread_time()
        consumer.close()

    def take(self, message) -> None:
        received = time.time()
        appended = message.timestamp()[1] / 1000 + HALF_A_STEP
        try:
            result = json.loads(message.value() or b"null")
        except ValueError:
            result = message.value()  # the ledger says what is wrong with it
        for event in self.ledger.returned(message.key(), result):
            self._fresh.put((event, appended, received))
        if self.measure_from is None:
            self.measure_from = received + self.load.warmup

    # -- streaming to the parent

    def stream(self) -> None:
        while not self._over.wait(STREAM_SECONDS):
            self.emit()

    def emit(self) -> None:
        over = self._over.is_set()  # then nobody is waited for any more
        rows = self._unacknowledged + [self._fresh.get() for _ in range(self._fresh.qsize())]
        known = [over or row[0] in self._taken for row in rows]  # asked once: the sender adds to it meanwhile
        self._unacknowledged = [row for row, there in zip(rows, known, strict=True) if not there]
        data = np.array(
            [self.sample(*row) for row, there in zip(rows, known, strict=True) if there], dtype=SAMPLE
        ).tobytes()
        out = len(self.ledger.out) + self.ledger.unsent  # what the broker did not take does not come back, either
        state = {"phase": self.phase, "sent": self.sent, "out": out}
        _write({"kind": "samples", "bytes": len(data), "measure_from": self.measure_from, **state}, data)

    def sample(self, event: int, appended: float, received: float) -> tuple:
        """All that is known of an event, in SAMPLE's order; its own notes are then forgotten."""
        taken, partition = self._taken.pop(event, (float("nan"), -1))
        due = self.start + self.load.due(event)
        return event, due, self._sent_at.pop(event), taken, appended, received, partition


def _write(frame: dict, data: bytes = b"") -> None:
    sys.stdout.buffer.write(json.dumps(frame).encode() + b"\n" + data)
    sys.stdout.buffer.flush()


def _die_with_parent() -> None:
    sys.stdin.buffer.read()
    os._exit(1)


def main() -> None:
    settings = json.loads(sys.stdin.buffer.readline())
    threading.Thread(target=_die_with_parent, daemon=True).start()
    sys.setswitchinterval(0.0005)  # the sender must not wait 5 ms for the collector's turn to end
    try:
        _write(Run(**settings).run())
    except LabError as problem:
        _write({"kind": "summary", "error": str(problem)})


if __name__ == "__main__":
    main()
