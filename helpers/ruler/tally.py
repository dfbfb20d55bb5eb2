"""The statistics of a run that still goes on, kept up to date from its new samples alone."""

import numpy as np

from helpers.ruler.probe import Probe
from helpers.ruler.statistics import HEADLINE
from helpers.ruler.trace import Trace

FLOOR = 0.1  # ms: where a log scale of latencies begins; what is faster counts as this
DECADES = 6  # from there: to 100 s
FINE, COARSE = 100, 20  # bins per decade: to read percentiles from, and to draw
EDGES = FLOOR * 10 ** (np.arange(DECADES * COARSE + 1) / COARSE)  # of the bins to draw
SPAN = 20  # seconds that `Recent` remembers


def floored(latency: np.ndarray) -> np.ndarray:
    """Clock rounding can give zero or less; a log scale cannot show that."""
    return np.maximum(latency, FLOOR)


class Tally:
    """Counts by latency. Adding samples costs the same however many there are already."""

    def __init__(self) -> None:
        self.fine = np.zeros(DECADES * FINE, int)
        self.shape = np.zeros(DECADES * COARSE, int)
        self.most = -np.inf
        self.exact: np.ndarray | None = None

    @classmethod
    def of(cls, trace: Trace) -> "Tally":
        """The counts of a finished run."""
        tally = cls()
        tally.add(trace.latency)
        tally.exact = trace.latency if len(trace.samples) else None
        return tally

    def add(self, latency: np.ndarray) -> None:
        if len(latency):
            self.fine += self._count(floored(latency), FINE)
            self.shape += self._count(floored(latency), COARSE)
            self.most = max(self.most, float(latency.max()))

    @staticmethod
    def _count(values: np.ndarray, per_decade: int) -> np.ndarray:
        place = np.clip((np.log10(values / FLOOR) * per_decade).astype(int), 0, DECADES * per_decade - 1)
        return np.bincount(place, minlength=DECADES * per_decade)

    def __add__(self, other: "Tally") -> "Tally":
        both = Tally()
        both.fine, both.shape = self.fine + other.fine, self.shape + other.shape
        both.most = max(self.most, other.most)
        return both

    def __len__(self) -> int:
        return int(self.fine.sum())

    def percentile(self, which: float) -> float:
        """Milliseconds: exact for a finished run, to the width of a bin (about 2 %) while it goes on."""
        if self.exact is not None:
            return float(np.percentile(self.exact, which))
        rank = 1 + round(which / 100 * (len(self) - 1))
        place = np.searchsorted(np.cumsum(self.fine), rank)
        return min(FLOOR * 10 ** ((place + 0.5) / FINE), max(self.most, FLOOR))

    def outline(self) -> np.ndarray:
        """The histogram's heights over `EDGES`, its peak 1; nothing where nothing was counted."""
        return np.where(self.shape == 0, np.nan, self.shape / max(1, self.shape.max()))


class Recent:
    """p50 and p99 of the results of each of the last seconds."""

    def __init__(self) -> None:
        self._parts: dict[int, list[np.ndarray]] = {}
        self._values: dict[int, np.ndarray] = {}

    def add(self, received: np.ndarray, latency: np.ndarray) -> None:
        second = np.floor(received).astype(int)
        for number in np.unique(second).tolist():
            self._parts.setdefault(number, []).append(latency[second == number])
            self._values[number] = np.percentile(np.concatenate(self._parts[number]), list(HEADLINE.values()))
        for old in [number for number in self._parts if number < max(self._parts) - SPAN - 2]:
            del self._parts[old], self._values[old]

    def ago(self, now: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(seconds before now, p50, p99), oldest first."""
        seconds = sorted(self._values)
        values = floored(np.array([self._values[number] for number in seconds]).reshape(-1, len(HEADLINE)))
        return np.array(seconds) + 0.5 - now, *values.T


class Reader:
    """What a running probe has measured so far."""

    def __init__(self) -> None:
        self.warm, self.measured, self.recent = Tally(), Tally(), Recent()
        self._next = 0

    def read(self, probe: Probe) -> None:
        begun = probe.status.get("measure_from")
        fresh = probe.samples[self._next : len(probe.samples)]
        self._next += len(fresh)
        if not fresh:
            return
        new = np.concatenate(fresh)
        latency = (new[probe.clock] - new["due"]) * 1000
        counts = new["due"] >= (np.inf if begun is None else begun)
        self.warm.add(latency[~counts])
        self.measured.add(latency[counts])
        if len(new):
            self.recent.add(new["received"], latency)
