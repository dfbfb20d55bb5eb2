"""A run's samples with their provenance: what was measured, on what, and what was lost."""

import json
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from helpers.errors import LabError
from helpers.ruler.load import SAMPLE
from helpers.ruler.statistics import PERCENTILES, Ratio, Rounds, ratio_of_rounds

STEP_MS = 100  # a clock that was set by more than this makes latencies of its own
FROZEN_MS = 1_500  # between two sends or looks at the clock, which come every 5 ms
LATE_SHARE = 0.01  # more late sends than this and the schedule was not kept
FALLS_BEHIND = 0.05  # seconds per second: a query that loses more than this on its load is not in a steady state
LEAST_GROWTH = 0.25  # seconds from one half of a round to the other: less than this may be one slow batch
FASTEST = 1  # the percentile that tells a growing backlog from a few slow events
ENOUGH, LONG_ENOUGH = 100, 1.25  # events and seconds in half a round, to tell


@dataclass
class Trace:
    """The measured samples of one run, or of several rounds of the same run joined together.

    `meta` holds the provenance and, per round, the probe's summary and the query's progress.
    """

    name: str
    samples: np.ndarray  # dtype SAMPLE, warm-up already dropped
    meta: dict = field(default_factory=dict)

    @property
    def latency(self) -> np.ndarray:
        """Milliseconds from when each event was due to when its result was there."""
        return (self.samples[self.clock] - self.samples["due"]) * 1000

    @property
    def clock(self) -> str:
        """Which of a sample's times ends its latency."""
        return "received" if self.meta.get("clock") == "received" else "appended"

    def seen(self, begin: str, end: str, name: str) -> "Trace":
        """The same events, timed from and to other moments of theirs (TIMES): what another instrument would report."""
        other = self.samples.copy()
        other["due"], other[self.clock] = self.samples[begin], self.samples[end]
        return Trace(name, other, self.meta)

    @property
    def rounds(self) -> list[dict]:
        return self.meta.get("rounds", [])

    def total(self, what: str) -> int:
        """Sum over the rounds of `sent`, `lost`, `duplicated`, `rows`, `overcounted` or `send_errors`."""
        return sum(lap.get(what, 0) for lap in self.rounds)

    @property
    def lost(self) -> int:
        return self.total("lost")

    @property
    def back(self) -> int:
        """Events whose result came: neither lost, nor refused by the broker in the first place."""
        return self.total("sent") - self.lost - self.total("send_errors")

    @property
    def duplicated(self) -> int:
        """Result rows that brought nothing new, and events that were counted more than once."""
        return self.total("duplicated") + self.total("overcounted")

    @property
    def throughput(self) -> float:
        """Events done a second: what was offered, if it kept up; beyond that, as fast as their results came."""
        if self.steady:
            return float(self.meta["load"]["rate"])
        ends = [self.samples[self.due_in(lap)][self.clock] for lap in self.rounds]
        return sum(map(len, ends)) / sum(float(end.max() - end.min()) for end in ends)

    @property
    def cpu_per_million(self) -> float:
        """Seconds of Spark's processor time for a million events that were done; NaN if a run was too short to tell."""
        cores = [lap.get("cost", {}).get("cores", np.nan) for lap in self.rounds]
        return float(np.mean(cores)) / self.throughput * 1e6

    @property
    def catch_up(self) -> float:
        """Seconds from when the last event was due to the last result, in the worst round: what waited at the end."""
        ends = [self.samples[self.due_in(lap)] for lap in self.rounds]
        return max(float(lap[self.clock].max() - lap["due"].max()) for lap in ends)

    @property
    def late_share(self) -> float:
        """The part of the events that were sent over 20 ms late, in the worst round."""
        return max((lap["late_share"] for lap in self.rounds), default=0.0)

    @property
    def schedule_kept(self) -> bool:
        return self.late_share <= LATE_SHARE

    @property
    def spoilt(self) -> str:
        """What made these figures say more about the machine than about Spark; empty if nothing did.

        If the sender itself stood still for longer than any query could make it, the whole machine did.
        """
        if any(lap.get("standstill_ms", 0) > FROZEN_MS for lap in self.rounds):
            return f"this machine stood still for over {FROZEN_MS / 1000:g} s, the ruler included"
        if any(lap.get("clock_step_ms", 0) > STEP_MS for lap in self.rounds):
            return f"this machine's clock was set by over {STEP_MS} ms"
        return ""

    @property
    def falls_behind(self) -> float:
        """How much longer even the fastest events waited with every second, in seconds, in the worst round.

        0 in a steady state: pauses and slow batches come and go. If a backlog grows, nobody is fast.
        """
        return max([0.0, *(self._growth(lap) for lap in self.rounds)])

    def _growth(self, lap: dict) -> float:
        begin, end = lap["measure_from"], lap["measure_to"]
        middle, due = (begin + end) / 2, self.samples["due"]
        halves = [self.latency[(due >= a) & (due < b)] for a, b in ((begin, middle), (middle, end))]
        if min(map(len, halves)) < ENOUGH or middle - begin < LONG_ENOUGH:
            return 0.0
        early, late = (np.percentile(half, FASTEST) / 1000 for half in halves)
        grown, half = float(late - early), middle - begin
        return grown / half if grown > max(FALLS_BEHIND * half, LEAST_GROWTH) else 0.0

    @property
    def steady(self) -> bool:
        """False if the backlog grew while it was measured: its latency then depends on how long one looks."""
        return self.falls_behind == 0

    @property
    def label(self) -> str:
        """The name, for a table or a figure; it says so if these figures are not those of a steady state."""
        return self.name if self.steady else f"{self.name} (backlog grows)"

    @property
    def note(self) -> str:
        """What a reader must know about this run; empty if there is nothing."""
        notes = []
        if self.spoilt:
            notes.append(f"{self.spoilt}: these figures say more about it than about Spark")
        elif not self.schedule_kept and self.meta.get("load", {}).get("pacing", "schedule") == "schedule":
            notes.append(
                f"{self.late_share:.0%} of the events were sent over 20 ms late: this machine could not keep the "
                "schedule. Latency counts from when they were due, so the figures are still honest"
            )
        if not self.steady:
            notes.append(
                f"not in a steady state: its backlog grew, every event waited {1000 * self.falls_behind:.0f} ms longer "
                "with every second. Its latency depends on how long you measure, so no ratio is made of it"
            )
        if errors := self.total("send_errors"):
            notes.append(f"the broker did not take {errors:,} of {self.total('sent'):,} events")
        if beyond := self.total("overcounted"):
            notes.append(f"the query counted {beyond:,} events more than were sent")
        return f"Note: {self.name}: {'; '.join(notes)}." if notes else ""

    def percentile(self, which: float) -> float:
        if len(self.samples) == 0:
            raise LabError(f"{self.name}: no event was measured, so there is no percentile to give.")
        return float(np.percentile(self.latency, which))

    @property
    def p50(self) -> float:
        return self.percentile(50)

    @property
    def p99(self) -> float:
        return self.percentile(99)

    def summary(self) -> dict[str, float]:
        """p50 to max in milliseconds."""
        return {name: self.percentile(which) for name, which in PERCENTILES.items()}

    def ecdf(self) -> tuple[np.ndarray, np.ndarray]:
        """Sorted latencies, and the share of events at or below each."""
        values = np.sort(self.latency)
        return values, np.arange(1, len(values) + 1) / len(values)

    def by_second(self) -> Rounds:
        """The latencies: round by round, in each second by second."""
        found = []
        for lap in self.rounds:
            inside = self.due_in(lap)
            second = np.floor(self.samples["due"][inside] - lap["measure_from"]).astype(int)
            found.append([self.latency[inside][second == number] for number in np.unique(second)])
        return [seconds for seconds in found if seconds]

    def due_in(self, lap: dict) -> np.ndarray:
        """Which samples belong to a round."""
        return (self.samples["due"] >= lap["measure_from"]) & (self.samples["due"] < lap["measure_to"])

    def windows(self, seconds: float = 1.0, which: float = 50) -> tuple[np.ndarray, np.ndarray]:
        """(seconds since the start of each window, percentile of the events due in it)."""
        elapsed = self.elapsed()
        number = np.floor(elapsed / seconds).astype(int)
        present = np.unique(number)
        return present * seconds, np.array([np.percentile(self.latency[number == n], which) for n in present])

    def elapsed(self) -> np.ndarray:
        """Measured seconds at which each event was due; rounds follow each other without their pauses."""
        seconds = np.zeros(len(self.samples))
        for lap, begin in zip(self.rounds, self.round_begins(), strict=True):
            inside = self.due_in(lap)
            seconds[inside] = self.samples["due"][inside] - lap["measure_from"] + begin
        return seconds

    def round_begins(self) -> np.ndarray:
        """At which measured second each round begins."""
        return np.cumsum([0.0, *(lap["measure_to"] - lap["measure_from"] for lap in self.rounds)])[:-1]

    def save(self, path: str | Path) -> Path:
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            np.savez_compressed(file, samples=self.samples, name=self.name, meta=json.dumps(self.meta))
        return path

    @classmethod
    def load(cls, path: str | Path) -> "Trace":
        try:
            with np.load(path, allow_pickle=False) as file:
                return cls(str(file["name"]), file["samples"], json.loads(str(file["meta"])))
        except (OSError, ValueError, KeyError, TypeError, EOFError, BadZipFile, zlib.error) as problem:
            raise LabError(f"{path} is not a saved run: {problem}") from problem

    @classmethod
    def join(cls, rounds: "list[Trace]") -> "Trace":
        """Rounds of the same run as one trace."""
        first = rounds[0]
        meta = first.meta | {"rounds": [lap for trace in rounds for lap in trace.rounds]}
        return cls(first.name, np.concatenate([trace.samples for trace in rounds]), meta)


def measured(samples: list[np.ndarray], summary: dict) -> np.ndarray:
    """All samples but those of the warm-up."""
    every = np.concatenate([*samples, np.empty(0, SAMPLE)])
    return every[(every["due"] >= summary["measure_from"]) & (every["due"] < summary["measure_to"])]


def ratio(slow: Trace, fast: Trace, which: float = 50, draws: int = 300, seed: int = 1) -> Ratio:
    """`slow` over `fast` at one percentile, with its 95 % interval; none if one of them was not in a steady state."""
    for trace in (slow, fast):
        if not len(trace.samples):
            raise LabError(f"{trace.name}: no event was measured, so there is nothing to compare.")
        if not trace.steady:
            return Ratio(np.nan, why=f"{trace.name} was not in a steady state, its backlog grew")
    return ratio_of_rounds(slow.by_second(), fast.by_second(), which, draws, seed)
