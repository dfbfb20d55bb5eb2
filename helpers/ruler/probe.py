"""The ruler: sends events on a fixed schedule from a process of its own, and times the results.

How it measures:
* Every event has its place in a fixed schedule. It is sent as soon as it is due, never skipped, and
  its latency counts from when it was *due*: a stall cannot hide the events that waited in it.
* The result's time is the broker's append time of the result record. The broker counts whole
  milliseconds, so half a millisecond is added, and due times are spread over the millisecond
  (`Load.due`): right on average. (With an external broker, which has a clock of its own, it is the
  time at which the result was read.)
* A result that carries `event_id` accounts for that event. A result that carries `count` (a running
  count per key) accounts for every event of its key up to that count: a micro-batch writes one row
  per key and batch, and each event in it is timed all the same.
"""

import json
import subprocess
import sys
import threading
from collections import deque
from dataclasses import asdict, dataclass

import numpy as np

from helpers.engines import janitor
from helpers.errors import LabError
from helpers.paths import ROOT

RATES = (1, 20_000)
GOLDEN = (5**0.5 - 1) / 2  # its multiples fill the unit interval evenly
SAMPLE = np.dtype([("event", "i8"), ("due", "f8"), ("appended", "f8"), ("received", "f8")])


@dataclass(frozen=True)
class Load:
    """What is sent and for how long; every number that defines a run."""

    rate: int = 1_000  # events per second
    seconds: float = 20  # measured
    warmup: float = 8  # sent before that, from the first result on, and dropped
    payload: int = 128  # bytes
    keys: int = 50
    skew: float = 0.0  # 0: all keys alike; above 1: Zipf with this exponent
    linger_ms: float = 0
    client: str = "confluent-kafka"  # the producer; or "kafka-python"
    patience: float = 60  # how long the first result may take
    drain: float = 20  # how long the last results may take

    def due(self, event: int) -> float:
        """Seconds from the start at which an event is due.

        Each event moves a little within its own slot, by up to a millisecond, always alike: without
        that, a rate of 1,000 per second would meet the broker's whole milliseconds always at the same
        point, and rounding would not average out.
        """
        return event / self.rate + event * GOLDEN % 1 * min(0.001, 1 / self.rate)

    def __post_init__(self) -> None:
        low, high = RATES
        if not low <= self.rate <= high:
            raise LabError(
                f"rate={self.rate}: the probe sends from {low} to {high:,} events per second. One laptop process "
                "cannot keep an honest schedule beyond that."
            )
        if not 0 < self.seconds <= 86_400 or not 0 <= self.warmup <= 3_600:
            raise LabError(
                f"seconds={self.seconds}, warmup={self.warmup}: measure for more than 0 seconds and at most a day, "
                "after at most an hour of warm-up."
            )
        if not 0 <= self.linger_ms <= 1_000:
            raise LabError(f"linger_ms={self.linger_ms}: choose from 0 to 1,000 milliseconds.")
        if not 0 <= self.payload <= 100_000:
            raise LabError(f"payload={self.payload}: choose from 0 to 100,000 bytes.")
        if not 1 <= self.keys <= 1_000_000:
            raise LabError(f"keys={self.keys}: choose from 1 to 1,000,000 keys.")
        if self.skew != 0 and not 1 < self.skew <= 10:
            raise LabError(f"skew={self.skew}: 0 means uniform keys; a Zipf exponent must be above 1, and at most 10.")
        if self.client not in ("confluent-kafka", "kafka-python"):
            raise LabError(f"client={self.client!r}: it can be 'confluent-kafka' or 'kafka-python'.")


class Probe:
    """The parent's side: start it, poll it for samples, read its summary."""

    def __init__(self, bootstrap: str, events: str, results: str, load: Load, clock: str = "appended") -> None:
        self.load, self.clock = load, clock
        self.samples: list[np.ndarray] = []
        self.status: dict = {"phase": "starting", "sent": 0, "out": 0, "measure_from": None}
        self.summary: dict | None = None
        self._lines: deque[str] = deque(maxlen=20)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "helpers.ruler.probe_process"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        janitor.kill_at_exit(self._process.pid)
        settings = {"bootstrap": bootstrap, "events": events, "results": results, "load": asdict(load), "clock": clock}
        self._process.stdin.write(json.dumps(settings).encode() + b"\n")
        self._process.stdin.flush()
        threading.Thread(target=self._read_stderr, daemon=True).start()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def wait(self, seconds: float) -> bool:
        """True once it has finished (or died)."""
        self._reader.join(seconds)
        return not self._reader.is_alive()

    def result(self) -> dict:
        """The summary, or a sentence about why there is none."""
        if self.summary is None:
            tail = "\n".join(self._lines)
            raise LabError(f"The probe ended without a result (exit code {self._process.poll()}). It said:\n{tail}")
        if "error" in self.summary:
            raise LabError(self.summary["error"])
        return self.summary

    def stop(self) -> None:
        if self._process.poll() is None:
            janitor.end_group(self._process.pid, grace=1)
        self._process.wait()
        self._process.stdin.close()
        self._reader.join(5)
        janitor.forget(self._process.pid)

    def _read(self) -> None:
        out = self._process.stdout
        while line := out.readline():
            frame = json.loads(line)
            if frame["kind"] == "samples":
                self.samples.append(np.frombuffer(out.read(frame["bytes"]), SAMPLE))
                self.status = frame
            else:
                self.summary = frame

    def _read_stderr(self) -> None:
        for line in self._process.stderr:
            self._lines.append(line.decode(errors="replace").rstrip())
