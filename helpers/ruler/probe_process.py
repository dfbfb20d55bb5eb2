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
from collections import deque

import numpy as np

from helpers.errors import LabError
from helpers.ruler.probe import SAMPLE, Load

STREAM_SECONDS = 0.25
LATE_SECONDS = 0.020  # a send this far behind its schedule counts as late
HALF_A_STEP = 0.0005  # the broker's clock counts whole milliseconds, rounded down
LAZY = {"fetch.min.bytes": 65_536}  # the broker has stamped the results: reading them at leisure disturbs less
KEY_CYCLE = 65_536  # keys are drawn once, then repeat


def pick_keys(load: Load, how_many: int, seed: int = 7) -> np.ndarray:
    """Which key each event has: uniform, or Zipf-distributed with exponent `skew`."""
    rng = np.random.default_rng(seed)
    if load.skew == 0:
        return rng.integers(load.keys, size=how_many)
    weights = 1.0 / np.arange(1, load.keys + 1) ** load.skew
    return rng.choice(load.keys, size=how_many, p=weights / weights.sum())


class Ledger:
    """Which events are out and which are back: loss and duplicates, for both kinds of result."""

    def __init__(self) -> None:
        self.out: set[int] = set()
        self.rows = 0
        self.duplicated = 0
        self._back: set[int] = set()
        self._waiting: dict[bytes, deque[int]] = {}
        self._counted: dict[bytes, int] = {}

    def sent(self, event: int, key: bytes) -> None:
        self.out.add(event)
        self._waiting.setdefault(key, deque()).append(event)

    def returned(self, key: bytes, result: dict) -> list[int]:
        """The events that this result row is the first to account for."""
        self.rows += 1
        if "count" in result:
            new = self._by_count(key, int(result["count"]))
        else:
            new = self._by_id(int(result["event_id"].rsplit("-", 1)[1]))
        self.duplicated += not new
        return new

    def _by_id(self, event: int) -> list[int]:
        if event in self._back:
            return []
        self._back.add(event)
        self.out.discard(event)
        return [event]

    def _by_count(self, key: bytes, count: int) -> list[int]:
        if key not in self._waiting:
            raise LabError(f"A result has the key {key!r}, which no event had: does the query write the event's key?")
        waiting, before = self._waiting[key], self._counted.get(key, 0)
        new = [waiting.popleft() for _ in range(min(count - before, len(waiting)))]
        self._counted[key] = max(count, before)
        self.out.difference_update(new)
        return new


class Run:
    """One run: the main thread sends, one thread collects, one streams samples to the parent."""

    def __init__(self, bootstrap: str, events: str, results: str, load: dict, clock: str = "appended") -> None:
        self.bootstrap, self.events, self.results, self.clock = bootstrap, events, results, clock
        self.load = Load(**load)
        self.id = os.urandom(4).hex()
        self.ledger = Ledger()
        self.phase = "waiting for the first result"
        self.start = time.time() + 0.5  # event 0 is due then
        self.measure_from: float | None = None  # known once the first result is back
        self.sent = self.late = self.send_errors = 0
        self.worst_slip = self.standstill = self.collector_cpu = 0.0
        self.fault = ""
        self._fresh: queue.SimpleQueue = queue.SimpleQueue()
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
        return {
            "kind": "summary",
            "start": self.start,
            "measure_from": self.measure_from,
            "measure_to": self.measure_from + self.load.seconds,
            "sent": self.sent,
            "rows": self.ledger.rows,
            "lost": len(self.ledger.out),
            "duplicated": self.ledger.duplicated,
            "send_errors": self.send_errors,
            "late_share": self.late / self.sent,
            "worst_slip_ms": self.worst_slip * 1000,
            "standstill_ms": self.standstill * 1000,
            **cost,
        }

    # -- sending

    def send(self) -> dict:
        """Send each event when it is due, until the measured time is over. Returns what it cost."""
        send, poll, flush = self.producer()
        keys = pick_keys(self.load, KEY_CYCLE).tolist()
        names = [b"k%d" % key for key in range(self.load.keys)]
        event = f'{{"event_id": "{self.id}-%d", "event_time": %d, "payload": "{"x" * self.load.payload}"}}'
        meter, before = None, time.time()
        while True:
            due = self.start + self.load.due(self.sent)
            if self.measure_from is not None:
                if due >= self.measure_from + self.load.seconds:
                    break
                if meter is None and due >= self.measure_from:
                    meter = self.meter()
                self.phase = "warming up" if meter is None else "measuring"
            now = time.time()
            self.standstill, before = max(self.standstill, now - before), now
            if due > now:
                self.check(now)
                poll()
                time.sleep(max(0.0, min(due - time.time(), 0.005)))
                continue
            self.late += now - due > LATE_SECONDS
            self.worst_slip = max(self.worst_slip, now - due)
            key = names[keys[self.sent % KEY_CYCLE]]
            self.ledger.sent(self.sent, key)
            send(key, (event % (self.sent, due * 1000)).encode())
            self.sent += 1
        cost = {name: (self.meter()[name] - meter[name]) for name in meter}
        flush()
        return {
            "producer_core_share": (cost["process"] - cost["collector"]) / cost["wall"],
            "probe_core_share": cost["process"] / cost["wall"],
        }

    def check(self, now: float) -> None:
        if self.fault:
            raise LabError(self.fault)
        if self.measure_from is None and now > self.start + self.load.patience:
            raise LabError(
                f"No result came back within {self.load.patience:.0f} s, although {self.sent:,} events were sent. "
                "Does the query read the events topic from the earliest offset and write to the results topic?"
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

    def meter(self) -> dict:
        return {"wall": time.time(), "process": time.process_time(), "collector": self.collector_cpu}

    def producer(self):
        """(send, poll, flush) of the chosen client, with the same settings for both."""
        if self.load.client == "kafka-python":
            from kafka import KafkaProducer

            slow = KafkaProducer(bootstrap_servers=self.bootstrap, linger_ms=int(self.load.linger_ms), acks=1)
            return (lambda key, value: slow.send(self.events, key=key, value=value), lambda: None, slow.flush)
        from confluent_kafka import Producer

        settings = {"bootstrap.servers": self.bootstrap, "linger.ms": self.load.linger_ms, "acks": 1}
        fast = Producer(settings | {"log_level": 0, "on_delivery": self.delivered})
        return (
            lambda key, value: fast.produce(self.events, key=key, value=value),
            lambda: fast.poll(0),
            lambda: fast.flush(30),
        )

    def delivered(self, error, _message) -> None:
        self.send_errors += error is not None

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
        if self.clock == "appended":
            settings |= LAZY
        consumer = Consumer(settings | {"enable.auto.commit": False, "fetch.wait.max.ms": 100})
        topic = consumer.list_topics(self.results, timeout=10).topics[self.results]
        consumer.assign([TopicPartition(self.results, partition, 0) for partition in topic.partitions])
        while not self._over.is_set():
            message = consumer.poll(0.1)  # returns with the first message: no artificial wait
            if message is not None and not message.error():
                self.take(message)
            self.collector_cpu = time.thread_time()
        consumer.close()

    def take(self, message) -> None:
        received = time.time()
        appended = message.timestamp()[1] / 1000 + HALF_A_STEP
        for event in self.ledger.returned(message.key(), json.loads(message.value())):
            self._fresh.put((event, self.start + self.load.due(event), appended, received))
        if self.measure_from is None:
            self.measure_from = received + self.load.warmup

    # -- streaming to the parent

    def stream(self) -> None:
        while not self._over.wait(STREAM_SECONDS):
            self.emit()

    def emit(self) -> None:
        rows = [self._fresh.get() for _ in range(self._fresh.qsize())]
        data = np.array(rows, dtype=SAMPLE).tobytes()
        state = {"phase": self.phase, "sent": self.sent, "out": len(self.ledger.out)}
        _write({"kind": "samples", "bytes": len(data), "measure_from": self.measure_from, **state}, data)


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
