"""The micro-batch tax, from Spark's own report: what a batch spends its time on."""

from datetime import datetime

import numpy as np

from helpers.errors import LabError
from helpers.ruler.trace import Trace

SKIP = 2  # the first batches carry the query's start


def began(batch: dict) -> float:
    """When a batch began, in seconds since 1970, by Spark's own report."""
    return datetime.fromisoformat(batch["timestamp"]).timestamp()


def finished(trace: Trace) -> list[dict]:
    """The batches that ended while a run went on, start-up left out: `batch`, `timestamp`, `rows` and `ms`."""
    return [batch for one in trace.rounds for batch in one["progress"][SKIP:]]


def typical(trace: Trace) -> dict[str, float]:
    """Median milliseconds per phase of `durationMs`."""
    some = finished(trace)
    if not some:
        raise LabError(f"{trace.name}: no batch has ended, so there is none to itemise.")
    return {phase: float(np.median([batch["ms"].get(phase, 0) for batch in some])) for phase in some[-1]["ms"]}


def busy_share(trace: Trace) -> float:
    """The part of the time in which a batch was under way, from 0 to 1."""
    busy = whole = 0.0
    for one in trace.rounds:
        some = one["progress"][SKIP:]
        if len(some) > 1:
            starts = [began(batch) for batch in some]
            busy += sum(batch["ms"]["triggerExecution"] for batch in some[:-1]) / 1000
            whole += starts[-1] - starts[0]
    if not whole:
        raise LabError(f"{trace.name}: fewer than two batches ended; measure for longer.")
    return min(1.0, busy / whole)
