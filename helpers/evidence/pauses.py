"""For how long the results stop, and whether a batch ended meanwhile."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from helpers.errors import LabError
from helpers.evidence import batches
from helpers.ruler.trace import Trace

NOTICEABLE_MS = 50.0


@dataclass(frozen=True)
class Pause:
    """A stretch without results: from `at` (measured seconds), `ms` long; `batch` is the one that ended in it."""

    at: float
    ms: float
    batch: int | None


def at_boundaries(trace: Trace) -> list[Pause]:
    """Every batch that ended in the measured time, with the pause around its end."""
    return [pause for gaps, ends in _rounds(trace) for pause in _at_ends(gaps, ends)]


def noticeable(trace: Trace, over_ms: float = NOTICEABLE_MS) -> list[Pause]:
    """Every stretch of more than `over_ms` without a result, longest first; outside a boundary its batch is None."""
    usual = 1000 / trace.meta.get("load", {}).get("rate", 1000)
    if over_ms < 2 * usual:
        raise LabError(
            f"over_ms={over_ms}: at this rate results are {usual:,.0f} ms apart anyway; ask for longer ones."
        )
    found = []
    for gaps, ends in _rounds(trace):
        matched = {pause.at: pause for pause in _at_ends(gaps, ends)}
        found += [matched.get(at, Pause(float(at), float(ms), None)) for at, ms in gaps]
    return sorted((pause for pause in found if pause.ms > over_ms), key=lambda pause: -pause.ms)


def _rounds(trace: Trace) -> Iterator[tuple[np.ndarray, dict[int, float]]]:
    """Per round: every gap between two results as (begin, milliseconds), and when each batch ended."""
    found = batches.by_round(trace, lambda batch: batch.end)
    for lap, begin, ends in zip(trace.rounds, trace.round_begins(), found, strict=True):
        times = np.unique(trace.samples[trace.clock][trace.due_in(lap)]) - lap["measure_from"] + begin
        yield np.column_stack([times[:-1], np.diff(times) * 1000]), ends


def _at_ends(gaps: np.ndarray, ends: dict[int, float]) -> list[Pause]:
    """The gap that contains each batch's end: no task runs then, so no result can come."""
    found = []
    for batch, at in ends.items():
        number = int(np.searchsorted(gaps[:, 0], at, side="right")) - 1
        begin, ms = gaps[number] if number >= 0 else (at, 0.0)
        if begin <= at < begin + ms / 1000:  # else it ended before the first result or after the last
            found.append(Pause(float(begin), float(ms), batch))
    return found


def since_boundary(trace: Trace, lead: float = 0.0) -> np.ndarray:
    """Seconds from the last end of a batch to when each event was due: all intervals on top of each other.

    Who was due up to `lead` seconds before the next end belongs to that one, and is below 0. NaN before the first.
    """
    since = np.full(len(trace.samples), np.nan)
    for lap in trace.rounds:
        due = trace.samples["due"]
        ends = np.array([batch.end for batch in batches.of_round(lap)])
        last = np.searchsorted(ends, due + lead, side="right") - 1
        known = trace.due_in(lap) & (last >= 0)
        since[known] = due[known] - ends[last[known]]
    return since
