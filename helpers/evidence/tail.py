"""What pauses do to a percentile: predicted from their length and the interval, and compared with what was measured."""

from collections.abc import Sequence

import numpy as np

from helpers.errors import LabError
from helpers.evidence import pauses
from helpers.ruler.trace import Trace

TAILS = {"p95": 95.0, "p99": 99.0, "p99.9": 99.9}


def expected(
    stops: Sequence[float], interval: float, which: float, calm: Sequence[float] | np.ndarray = (0.0,)
) -> float:
    """The percentile (ms) of a run in which every interval (s) is followed by one of these pauses (ms).

    Who is due first in a pause waits for all of it, who is due last for nothing: in a pause of P, the events of its
    first P - y milliseconds wait for longer than y. The others take what `calm` events take (ms). The percentile is
    the y beyond which the right share of all events is; about P - share x interval, while that is inside the pause.
    """
    if not len(stops):
        raise LabError("No pause was measured, so nothing can be predicted from it.")
    long, quiet = np.asarray(stops, float), np.sort(calm)
    whole = len(long) * interval * 1000 + long.sum()

    def slower(level: float) -> float:
        """The share of the events that take longer than this."""
        waiting = np.maximum(0, long - level).sum() / whole
        return waiting + (1 - long.sum() / whole) * (1 - np.searchsorted(quiet, level, side="right") / len(quiet))

    low, high = 0.0, float(max(long.max(), quiet[-1]))
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if slower(middle) > 1 - which / 100 else (low, middle)
    return high


def cliff(stops: Sequence[float], which: float) -> float:
    """The interval (s) from which on the median of these pauses (ms) is out of a percentile, about."""
    return float(np.median(stops)) / 1000 / (1 - which / 100)


def lengths(trace: Trace) -> list[float]:
    """The pauses at a run's boundaries (ms), each as long as its first victim waited.

    That is a little more than the gap between two results: of several tasks each stops and starts in its own moment.
    """
    due, stops = trace.elapsed(), []
    for pause in pauses.at_boundaries(trace):
        near = np.abs(due - pause.at) < pause.ms / 1000
        stops.append(float(max(pause.ms, trace.latency[near].max(initial=0.0))))
    if not stops:
        raise LabError(f"{trace.name}: no interval ended while it was measured; measure for longer.")
    return stops


def calm(trace: Trace) -> np.ndarray:
    """The latencies (ms) of the events that no boundary touched: neither in a pause nor right after it."""
    reach = max(lengths(trace)) / 1000
    return trace.latency[pauses.since_boundary(trace, lead=reach) > reach]


def slope(trace: Trace) -> float:
    """How much longer (s) an event waits that is due a second later in a pause: below 0, the first wait longest.

    The median of all boundaries, each by the events that are due in the first nine tenths of its pause.
    """
    due, waits = trace.elapsed(), trace.latency / 1000
    slopes = []
    for pause in pauses.at_boundaries(trace):
        inside = (due >= pause.at) & (due < pause.at + 0.9 * pause.ms / 1000)
        slopes.append(np.polyfit(due[inside], waits[inside], 1)[0] if inside.sum() > 1 else 0.0)
    return float(np.median(slopes))


def predicted(trace: Trace, interval: float, which: float) -> float:
    """The percentile (ms) that a run's own pauses predict if they came every `interval` seconds."""
    return expected(lengths(trace), interval, which, calm(trace))


def miss(trace: Trace, interval: float) -> float:
    """How far p95, p99 and p99.9 are from what the run's pauses predict at this interval: the worst, in pauses."""
    errors = [trace.percentile(which) - predicted(trace, interval, which) for which in TAILS.values()]
    return float(max(map(abs, errors)) / np.median(lengths(trace)))
