"""Latencies of whole runs: how they are distributed, how slow the slowest are, how they change with time."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator

from helpers.figures.axes import bins, limits, log_ms, measured_seconds, next_rounds, percentile_line, some_of
from helpers.figures.looks import Look, looks
from helpers.figures.style import HEIGHT, legend, new_figure, style
from helpers.ruler.statistics import HEADLINE, ms
from helpers.ruler.tally import FLOOR, floored
from helpers.ruler.trace import Trace

MANY_BOUNDARIES = 60  # more than these would hide the data


def distributions(traces: Sequence[Trace], title: str = "Latency distributions") -> Figure:
    """Histogram of each trace on a log axis; above it a bar from its p50 to its p99, with the values."""
    with style():
        height = 0.56 * len(traces)
        figure = new_figure("latency distributions", HEIGHT - 1.1 + height)
        marks, ax = figure.subplots(2, 1, sharex=True, height_ratios=[height, HEIGHT - 2.1])
        figure.get_layout_engine().set(hspace=0, h_pad=0.1)
        edges = bins(*limits(traces, room_low=9, room_high=9))
        for number, (trace, look) in enumerate(zip(traces, looks(traces), strict=True)):
            _histogram(ax, trace, look, edges)
            _mark(marks, ax, len(traces) - 1 - number, trace, look)
        log_ms(ax, "x", edges[0], edges[-1])
        if any((trace.latency < FLOOR).any() for trace in traces):
            ax.set_xlabel(f"latency (ms, log scale; what took less than {FLOOR:g} ms stands there)")
        ax.set_ylim(0, None)
        ax.yaxis.set_major_locator(MaxNLocator(4))
        ax.set_ylabel("events (% per bar)")
        marks.set_ylim(-0.45, len(traces) - 0.3)
        marks.set_axis_off()
        marks.set_title(title, pad=8)
    return figure


def _histogram(ax: Axes, trace: Trace, look: Look, edges: np.ndarray) -> None:
    counts, _ = np.histogram(np.clip(floored(trace.latency), edges[0], edges[-1]), edges)
    share = 100 * counts / len(trace.samples)
    ax.stairs(share, edges, fill=True, color=look.colour, alpha=0.28, zorder=2)
    outline = np.where(counts == 0, np.nan, share)  # no line where there is nothing
    ax.stairs(outline, edges, color=look.colour, linewidth=1.8, linestyle=look.line, zorder=3)


def _mark(marks: Axes, ax: Axes, row: float, trace: Trace, look: Look) -> None:
    """●──◆ from p50 to p99, each with its value, and thin lines down into the histogram."""
    ends = {name: trace.percentile(which) for name, which in HEADLINE.items()}
    places = [max(value, FLOOR) for value in ends.values()]
    marks.plot(places, [row, row], color=look.colour, linewidth=3, solid_capstyle="butt")
    beside = ((-11, "right"), (11, "left"))  # points away, and which end of the words is there
    for (name, value), place, marker, (away, side) in zip(ends.items(), places, "oD", beside, strict=True):
        marks.plot(place, row, marker, color=look.colour, markersize=10, markeredgecolor="white", zorder=4)
        words = {"textcoords": "offset points", "ha": side, "va": "center"}
        marks.annotate(f"{name} {ms(value)} ms", (place, row), (away, 0), **words)
        ax.axvline(place, color=look.colour, linewidth=1.2, linestyle=":", zorder=1)
    above = {"textcoords": "offset points", "ha": "center", "va": "bottom", "weight": "bold", "color": look.text}
    marks.annotate(trace.label, (np.sqrt(places[0] * places[1]), row), (0, 9), **above)


def nines(traces: Sequence[Trace], title: str = "How slow are the slowest events?") -> Figure:
    """Share of events at or below each latency, in nines: each step up is a ten times rarer event."""
    with style():
        figure = new_figure("latency in nines")
        ax = figure.subplots()
        low, high = limits(traces)
        for trace, look in zip(traces, looks(traces), strict=True):
            x, y = _in_nines(trace)
            ax.plot(x, y, color=look.colour, linestyle=look.line, drawstyle="steps-post", label=trace.label)
            ax.plot(x[-1:], y[-1:], look.marker, color=look.colour, markersize=8)
        log_ms(ax, "x", low, high)
        top = max(np.log10(max(len(trace.samples), 10)) for trace in traces)
        ax.set_ylim(0, top + 0.25)
        ticks = np.arange(int(top) + 1)
        ax.yaxis.set_major_locator(FixedLocator(ticks))
        ax.yaxis.set_major_formatter(FuncFormatter(lambda nines, _: f"{100 * (1 - 10.0**-nines):.10g} %"))
        ax.set_ylabel("events at least this fast (%)")
        legend(ax, title)
    return figure


def _in_nines(trace: Trace, points: int = 1_500) -> tuple[np.ndarray, np.ndarray]:
    """Sorted latencies against -log10 of the share that is slower, thinned where they are dense."""
    values, share = trace.ecdf()
    ranks = np.unique(len(values) - np.geomspace(1, len(values), points).round().astype(int))
    slower = 1 - np.concatenate([[0.0], share[:-1]])
    return floored(values[ranks]), -np.log10(slower[ranks])


def over_time(
    traces: Sequence[Trace],
    window: float = 1.0,
    boundaries: Sequence[float] = (),
    title: str = "Latency over time",
) -> Figure:
    """Single events as points, p50 and p99 of each window as lines; batch boundaries as lines, if given."""
    with style():
        figure = new_figure("latency over time", HEIGHT + 0.4)
        ax = figure.subplots()
        handles = []
        for trace, look in zip(traces, looks(traces), strict=True):
            keep = some_of(len(trace.samples))
            x, y = trace.elapsed()[keep], floored(trace.latency)[keep]
            ax.plot(x, y, ".", color=look.colour, alpha=0.4, markersize=4.5, markeredgewidth=0, rasterized=True)
            for name, which in HEADLINE.items():
                at, value = trace.windows(window, which)
                handles += percentile_line(ax, at + window / 2, value, look, which, 5.5, label=f"{trace.label} {name}")
        log_ms(ax, "y", *limits(traces))
        measured_seconds(ax, max([window] + [float(trace.elapsed().max()) for trace in traces]))
        ax.set_xlabel(f"measured time (s); lines: {' and '.join(HEADLINE)} of each {window:g} s")
        legend(ax, title, handles + _boundaries(ax, boundaries) + next_rounds(ax, traces)[:1])
    return figure


def staircase(traces: Sequence[Trace], seconds: float = 2.0, title: str = "When a result comes") -> Figure:
    """When each event's result was there against when the event was due, in the middle of a run, one panel for each.

    On the dotted diagonal nobody waits. A batch gives all its results at once: a step.
    """
    with style():
        figure = new_figure("result time against due time", HEIGHT)
        panels = figure.subplots(1, len(traces), sharex=True, sharey=True, squeeze=False)[0]
        for ax, trace, look in zip(panels, traces, looks(traces), strict=True):
            lap = trace.rounds[0]
            begin = max(lap["measure_from"], (lap["measure_from"] + lap["measure_to"] - seconds) / 2)
            due, there = trace.samples["due"] - begin, trace.samples[trace.clock] - begin
            inside = (due >= 0) & (due < seconds)
            ax.plot([0, seconds], [0, seconds], color="#777777", linestyle=":", linewidth=1.6, zorder=1)
            ax.plot(due[inside], there[inside], ".", color=look.colour, markersize=4, rasterized=True, zorder=2)
            ax.set_title(trace.label, fontsize=14, color=look.text, loc="right")
            ax.set_xlabel("the event was due at (s)")
        panels[0].set_xlim(0, seconds)
        panels[0].set_ylim(0, None)
        panels[0].set_ylabel("its result was there at (s)")
        figure.suptitle(title, x=0.01, ha="left", fontsize=17, weight="bold")
    return figure


def _boundaries(ax: Axes, seconds: Sequence[float]) -> list[Line2D]:
    """A line for each; the first of them, for the legend. If there are many, short ones at the bottom."""
    inside = [at for at in seconds if 0 <= at <= ax.get_xlim()[1]]
    tall = 1 if len(inside) <= MANY_BOUNDARIES else 0.05
    drawn = {"ymax": tall, "color": "#444444", "linewidth": 1, "zorder": 1, "label": "batch boundary"}
    return [ax.axvline(at, **drawn) for at in inside][:1]
