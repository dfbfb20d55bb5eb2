"""Who was about when events were slow: boundaries, collectors, other programs on the same cores.

All times are measured seconds, as in a figure of the run.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from helpers.engines.jvm_log import Stop
from helpers.engines.machine import core_count
from helpers.errors import LabError
from helpers.evidence import pauses
from helpers.ruler.trace import Trace

SLOW_MS = 50.0
WORTH_MS = 5.0  # a JVM stops for less than this many times a second, and nobody notices
LOUD = 0.4  # of the machine's cores, taken by programs that are not ours
STAMPS = ("taken", "appended")  # by the broker, of an event and of its result
HALF = 0.5  # of an event's wait must be within what is blamed for it
COLLECTORS = {"Spark": "Spark's collector", "Kafka": "Kafka's collector"}
BOUNDARY, OTHERS, NOBODY = "boundary", "other programs", "nobody known"
SUSPECTS = (*COLLECTORS.values(), BOUNDARY, OTHERS)  # the more particular first


@dataclass(frozen=True)
class Happening:
    """Something that may have kept events waiting, from `begin` to `end`."""

    who: str
    begin: float
    end: float
    words: str = ""

    def __str__(self) -> str:
        return f"{self.begin:6.2f} s  {self.who}, {1000 * (self.end - self.begin):,.0f} ms{self.words}"


def happenings(trace: Trace) -> list[Happening]:
    """All that is known of a run, in the order of time."""
    return sorted([*_stops(trace), *_boundaries(trace), *_others(trace)], key=lambda one: one.begin)


def _stops(trace: Trace) -> Iterator[Happening]:
    for lap, offset in _rounds(trace):
        for jvm, found in lap.get("stops", {}).items():
            for stop in (Stop(**one) for one in found):
                if stop.collects and stop.ms >= WORTH_MS:
                    begin = stop.begin + offset
                    yield Happening(COLLECTORS[jvm], begin, begin + stop.ms / 1000, f" ({stop.why})")


def _boundaries(trace: Trace) -> Iterator[Happening]:
    for pause in pauses.at_boundaries(trace) if trace.rounds and "progress" in trace.rounds[0] else ():
        yield Happening(BOUNDARY, pause.at, pause.at + pause.ms / 1000, f" (batch {pause.batch})")


def _others(trace: Trace) -> Iterator[Happening]:
    for lap, offset in _rounds(trace):
        for look in lap.get("cpu", ()):
            if look["other_cores"] >= LOUD * core_count():
                words = f" ({look['other_cores']:.1f} cores)"
                yield Happening(OTHERS, look["since"] + offset, look["until"] + offset, words)


def _rounds(trace: Trace) -> Iterator[tuple[dict, float]]:
    """Each round, and what makes its clock's seconds measured seconds."""
    for lap, begin in zip(trace.rounds, trace.round_begins(), strict=True):
        yield lap, begin - lap["measure_from"]


def between(trace: Trace, begin: float, end: float) -> None:
    """Say what happened in a stretch of a run, and how its events fared."""
    due = trace.elapsed()
    there = trace.latency[(due >= begin) & (due < end)]
    if not len(there):
        raise LabError(f"{trace.name}: no event was due between {begin:g} and {end:g} s. Mark another stretch.")
    worst = f"{len(there):,} events, p50 {np.median(there):,.1f} ms, slowest {there.max():,.0f} ms"
    print(f"{begin:g} to {end:g} s: {worst}")
    found = [one for one in happenings(trace) if one.begin < end and one.end > begin]
    print("\n".join(f"  {one}" for one in found) or "  nothing that we know of")


def blame(trace: Trace, over_ms: float = SLOW_MS) -> dict[str, int]:
    """How many of the events that took longer than this were slow because of whom: see `culprits`."""
    return {who: int(guilty.sum()) for who, guilty in culprits(trace, over_ms).items()}


def culprits(trace: Trace, over_ms: float = SLOW_MS) -> dict[str, np.ndarray]:
    """Which of the events that took longer than this were slow because of whom, as a mask of all events.

    A suspect is to blame if at least half of an event's wait was within its happening. If there are several, the
    first of SUSPECTS: a collection may fall into a boundary, and both into a time with other programs.
    """
    left = trace.latency > over_ms
    begin, waits = trace.elapsed(), trace.latency / 1000
    known, found = happenings(trace), {}
    for who in SUSPECTS:
        shared = np.zeros(len(begin))
        for one in known:
            if one.who == who:
                shared += np.clip(np.minimum(begin + waits, one.end) - np.maximum(begin, one.begin), 0, None)
        found[who] = left & (shared >= HALF * waits)
        left = left & ~found[who]
    return found | {NOBODY: left}


# -- where an event's time went


def legs(trace: Trace) -> dict[str, np.ndarray]:
    """Every event's latency (ms) in three parts: until it is sent, to Kafka, and from there until its result is there.

    The last part is between two of the broker's own stamps, so it needs no second clock. What is neither that nor late
    in sending is on the way to the broker (and back, where latency ends when a result is read).
    """
    late, inside = (1000 * (trace.samples[end] - trace.samples[begin]) for begin, end in (("due", "sent"), STAMPS))
    return {"late in sending": late, "to Kafka": trace.latency - late - inside, "Kafka to Kafka": inside}


def typical_legs(trace: Trace, which: float) -> dict[str, float]:
    """The parts (ms) of the events at one percentile: the mean of the ten that are nearest to it."""
    near = np.argsort(np.abs(trace.latency - trace.percentile(which)))[:10]
    return _mean_legs(trace, near)


def legs_by_culprit(trace: Trace, over_ms: float = SLOW_MS) -> dict[str, dict[str, float]]:
    """The parts (ms) of the mean slow event of each suspect; NaN for those who have none on their conscience."""
    found = culprits(trace, over_ms)
    return {who: _mean_legs(trace, found[who]) for who in SUSPECTS}


def _mean_legs(trace: Trace, which: np.ndarray) -> dict[str, float]:
    """NaN if there are none."""
    return {leg: float(np.nanmean(part[which])) if part[which].size else np.nan for leg, part in legs(trace).items()}
