"""What is sent: the load of a run, its schedule and its keys, and what is kept of every event."""

from dataclasses import dataclass, fields, replace

import numpy as np

from helpers.errors import LabError
from helpers.settings import PATIENCE_SECONDS

RATES = (1, 20_000)
GOLDEN = (5**0.5 - 1) / 2  # its multiples fill the unit interval evenly
KEY_CYCLE = 65_536  # keys are drawn once, then repeat
PACINGS = {
    "schedule": "every event at its place in the schedule, whatever comes back",
    "answer": "each waits until the result of the one before it is back",
    "sleep": "send, stamp, sleep for one over the rate, and so on",
}
# Of every event: when it was due, when it was really sent, when the broker had the event (`taken`, in `partition`),
# when it had the result (`appended`), and when the probe had read that.
TIMES = ("due", "sent", "taken", "appended", "received")
SAMPLE = np.dtype([("event", "i8"), *((name, "f8") for name in TIMES), ("partition", "i4")])


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
    pacing: str = "schedule"  # or "answer" or "sleep", which hide a stall: see PACINGS and lesson 06
    patience: float = PATIENCE_SECONDS
    drain: float = 20  # how long the last results may take

    def due(self, event: int) -> float:
        """Seconds from the start at which an event is due.

        Each event moves a little within its own slot, by up to a millisecond, always alike: without
        that, a rate of 1,000 per second would meet the broker's whole milliseconds always at the same
        point, and rounding would not average out.
        """
        return event / self.rate + event * GOLDEN % 1 * min(0.001, 1 / self.rate)

    def changed(self, **changes: object) -> "Load":
        """The same load with some settings changed; a misspelt one gets a sentence."""
        known = [field.name for field in fields(self)]
        unknown = [name for name in changes if name not in known]
        if unknown:
            raise LabError(f"{', '.join(unknown)}: no such setting of a run. There are {', '.join(known)}.")
        return replace(self, **changes)

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
        if self.pacing not in PACINGS:
            raise LabError(f"pacing={self.pacing!r}: it can be {', '.join(PACINGS)}.")


def pick_keys(load: Load, how_many: int, seed: int = 7) -> np.ndarray:
    """Which key each event has: uniform, or Zipf-distributed with exponent `skew`."""
    rng = np.random.default_rng(seed)
    if load.skew == 0:
        return rng.integers(load.keys, size=how_many)
    weights = 1.0 / np.arange(1, load.keys + 1) ** load.skew
    return rng.choice(load.keys, size=how_many, p=weights / weights.sum())
