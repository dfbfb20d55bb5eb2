"""The batches of a run, from Spark's own report: when each began and ended, and what it spent its time on."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from itertools import zip_longest

import numpy as np

from helpers.errors import LabError
from helpers.ruler.trace import Trace

SKIP = 2  # the first batches carry the query's start


@dataclass(frozen=True)
class Batch:
    """One batch (in Real-Time Mode: one interval) as Spark reports it when it is over. Times are epoch seconds."""

    number: int
    start: float
    end: float
    rows: int
    ms: dict[str, float]  # Spark's `durationMs`


def of_round(lap: dict, skip: int = 0) -> list[Batch]:
    """The batches that ended in one round of a run, without its first `skip`."""
    return [_batch(report) for report in lap.get("progress", [])[skip:]]


def _batch(report: dict) -> Batch:
    start = datetime.fromisoformat(report["timestamp"]).timestamp()
    end = start + report["ms"]["triggerExecution"] / 1000
    return Batch(report["batch"], start, end, report["rows"], report["ms"])


def finished(trace: Trace) -> list[Batch]:
    """The batches that ended while a run went on, start-up left out."""
    return [batch for lap in trace.rounds for batch in of_round(lap, SKIP)]


# -- when


def starts(trace: Trace) -> list[float]:
    """When batches began, in measured seconds."""
    return [at for begun in by_round(trace, lambda batch: batch.start) for at in begun.values()]


def ends(trace: Trace) -> list[float]:
    """When batches ended, in measured seconds."""
    return [at for ended in by_round(trace, lambda batch: batch.end) for at in ended.values()]


def by_round(trace: Trace, moment: Callable[[Batch], float]) -> list[dict[int, float]]:
    """Per round: a moment of each batch in measured seconds, by the batch's number, if it was within them."""
    found = []
    for lap, before in zip(trace.rounds, trace.round_begins(), strict=True):
        begin, end = lap["measure_from"], lap["measure_to"]
        moments = {batch.number: moment(batch) for batch in of_round(lap)}
        found.append({number: at - begin + before for number, at in moments.items() if begin <= at < end})
    return found


# -- what it costs


def typical(trace: Trace) -> dict[str, float]:
    """Median milliseconds per phase of `durationMs`."""
    some = finished(trace)
    if not some:
        raise LabError(f"{trace.name}: no batch has ended, so there is none to itemise.")
    return _median([batch.ms for batch in some])


def busy_share(trace: Trace) -> float:
    """The part of the time in which a batch was under way, from 0 to 1."""
    busy = whole = 0.0
    for lap in trace.rounds:
        some = of_round(lap, SKIP)
        if len(some) > 1:
            busy += sum(batch.ms["triggerExecution"] for batch in some[:-1]) / 1000
            whole += some[-1].start - some[0].start
    if not whole:
        raise LabError(f"{trace.name}: fewer than two batches ended; measure for longer.")
    return min(1.0, busy / whole)


def boundary_cost(trace: Trace, interval: float) -> dict[str, float]:
    """Median milliseconds that an interval of `interval` seconds takes beyond itself, by phase of `durationMs`.

    `addBatch` is what it took longer than the interval (ending tasks, starting new ones), and `other` has the
    time between the end of one interval and the start of the next.
    """
    costs = []
    for lap in trace.rounds:
        some = of_round(lap, skip=1)  # the first carries the query's start
        for batch, after in zip_longest(some, some[1:]):
            between = (after.start - batch.end) * 1000 if after else 0.0
            cost = {phase: value for phase, value in batch.ms.items() if phase != "triggerExecution"}
            rest = max(0.0, batch.ms["triggerExecution"] - sum(cost.values()))
            cost["addBatch"] = max(0.0, cost.get("addBatch", 0) - interval * 1000)
            costs.append(cost | {"other": rest + max(0.0, between)})
    if not costs:
        raise LabError(f"{trace.name}: no interval after the first one ended, so there is none to itemise.")
    return _median(costs)


def log_wait(trace: Trace, interval: float) -> float:
    """Milliseconds of the median interval in which the query waited for its two log files."""
    cost = boundary_cost(trace, interval)
    return cost.get("walCommit", 0.0) + cost.get("commitOffsets", 0.0)


def _median(costs: list[dict[str, float]]) -> dict[str, float]:
    """Phase by phase, for the phases of the last."""
    return {phase: float(np.median([cost.get(phase, 0) for cost in costs])) for phase in costs[-1]}
