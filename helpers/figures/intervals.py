"""Figures of lesson 04: all intervals on top of each other, and the tail against the interval."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from helpers.evidence import pauses, tail
from helpers.figures.axes import log_ms, plain
from helpers.figures.looks import look_of
from helpers.figures.style import HEIGHT, INK, legend, new_figure, style
from helpers.ruler.tally import floored
from helpers.ruler.trace import Trace

LEAD = 0.2  # of an interval, drawn before its boundary
LOOKS = {"p95": ("#E69F00", "^", ":"), "p99": ("#0072B2", "o", "-"), "p99.9": ("#882255", "s", (0, (5, 2)))}


def folded(trace: Trace, interval: float, title: str | None = None) -> Figure:
    """Every event by when it was due since the last boundary: all intervals of a run on top of each other."""
    since = pauses.since_boundary(trace, lead=LEAD * interval)
    stop = float(np.median(tail.lengths(trace)))
    with style():
        figure = new_figure("all intervals on top of each other")
        ax = figure.subplots()
        colour = look_of(trace).colour
        ax.plot(since, trace.latency, ".", color=colour, alpha=0.4, markersize=5, markeredgewidth=0, rasterized=True)
        ax.axvline(0, color=INK, linewidth=1.3, linestyle=(0, (5, 2)), zorder=1)
        ax.set_xlim(-LEAD * interval, (1 - LEAD) * interval)
        ax.set_ylim(0, max(1.0, 1.08 * float(trace.latency.max())))
        ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
        ax.set_ylabel("latency (ms)")
        ax.set_xlabel("when the event was due (s from the end of an interval, dashed)")
        words = f"{len(tail.lengths(trace))} boundaries, the same slope: a median pause of {stop:,.0f} ms"
        ax.set_title(title or words, pad=10)
    return figure


def tail_curves(intervals: Sequence[float], traces: Sequence[Trace], title: str | None = None) -> Figure:
    """Percentiles against the interval: measured, and as the pauses of the first run and their own predict them."""
    first, stops = traces[0], tail.lengths(traces[0])
    x = np.geomspace(min(intervals) / 1.6, max(3 * max(intervals), 1.6 * tail.cliff(stops, 99)), 200)
    with style():
        figure = new_figure("the tail against the interval", HEIGHT + 0.5)
        ax = figure.subplots()
        calm, drawn = tail.calm(first), []
        for name, which in tail.TAILS.items():
            colour, marker, line = LOOKS[name]
            curve = floored(np.array([tail.expected(stops, at, which, calm) for at in x]))
            points = floored(np.array([trace.percentile(which) for trace in traces]))
            own = [tail.predicted(trace, at, which) for at, trace in zip(intervals, traces, strict=True)]
            ax.plot(x, curve, color=colour, linestyle=line, alpha=0.75)
            ax.plot(intervals, own, "_", color=colour, markersize=34, markeredgewidth=2.5)
            dots = {"color": colour, "markersize": 11, "markeredgecolor": INK, "zorder": 3}
            ax.plot(intervals, points, marker, label=f"{name} measured", **dots)
            drawn += [*curve, *points, *own]
        ax.plot([], [], color="#777777", label=f"predicted by {first.name}")
        ax.plot([], [], "_", color="#777777", markersize=34, markeredgewidth=2.5, label="predicted by its own pauses")
        at = tail.cliff(stops, 99)
        ax.axvline(at, color=INK, linewidth=1.3, linestyle=(0, (5, 2)), zorder=1)
        ax.set_xscale("log")
        ax.set_xlim(x[0], x[-1])
        ax.xaxis.set_major_locator(FixedLocator([*intervals, 2 * max(intervals)]))
        ax.xaxis.set_minor_locator(NullLocator())
        ax.xaxis.set_major_formatter(FuncFormatter(plain))
        ax.set_xlabel("interval (s, log scale); dashed: where p99 should leave the pause")
        log_ms(ax, "y", min(drawn) / 1.6, max(drawn) * 1.6)
        said = f"p99 goes from {traces[0].p99:,.0f} to {traces[-1].p99:,.0f} ms; predicted cliff: {at:,.0f} s"
        legend(ax, title or said)
    return figure
