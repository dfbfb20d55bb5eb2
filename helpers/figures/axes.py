"""Axes of latency: logarithmic, in milliseconds, with plain numbers; and the lines that are drawn on them."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from helpers.figures.looks import Look
from helpers.figures.style import STYLE
from helpers.ruler.statistics import HEADLINE
from helpers.ruler.tally import floored
from helpers.ruler.trace import Trace

BINS_PER_DECADE = 24
POINTS = 3_000  # of one trace in a scatter
MEDIAN, TAIL = HEADLINE.values()
LINES: dict[float, object] = {MEDIAN: "-", TAIL: (0, (4, 1.5))}  # by percentile


def plain(value: float, _position: object = None) -> str:
    """0.1, 1, 10, 100, 1,000: no powers."""
    return f"{value:,.0f}" if value >= 1 else f"{value:g}"


def log_ms(ax: Axes, which: str, low: float, high: float, label: str = "latency (ms, log scale)") -> None:
    """Make one axis logarithmic, in milliseconds, with plain numbers."""
    axis = ax.xaxis if which == "x" else ax.yaxis
    getattr(ax, f"set_{which}scale")("log")
    getattr(ax, f"set_{which}lim")(low, high)
    axis.set_major_locator(LogLocator(10, numticks=12))
    axis.set_minor_locator(LogLocator(10, subs=range(2, 10), numticks=12))
    if np.log10(high / low) < 1.3:  # too few decades to read a value from: name the steps between
        axis.set_minor_locator(LogLocator(10, subs=(2, 5), numticks=12))
        axis.set_minor_formatter(FuncFormatter(plain))
    else:
        axis.set_minor_formatter(NullFormatter())
    axis.set_major_formatter(FuncFormatter(plain))
    ax.grid(False, axis=which, which="minor")
    ax.tick_params(axis=which, which="both", labelsize=STYLE["xtick.labelsize"])
    axis.set_label_text(label)


def measured_seconds(ax: Axes, end: float) -> None:
    """Make the x axis that of a run's measured time."""
    ax.set_xlim(0, end)
    ax.xaxis.set_major_locator(MaxNLocator(8, steps=[1, 2, 5, 10]))


def next_rounds(ax: Axes, traces: Sequence[Trace], tall: float = 1.0) -> list[Line2D]:
    """A line wherever a round begins after the first: between two rounds others were measured."""
    begins = {round(at, 2) for trace in traces for at in trace.round_begins()[1:]}
    drawn = {"color": "#777777", "linewidth": 1.6, "linestyle": (0, (1, 1.5)), "zorder": 1, "label": "next round"}
    return [ax.axvline(at, ymax=tall, **drawn) for at in sorted(begins)]


def bins(low: float, high: float) -> np.ndarray:
    """Edges of equal width on a log axis, the same for every trace."""
    first = np.floor(np.log10(low) * BINS_PER_DECADE)
    last = np.ceil(np.log10(high) * BINS_PER_DECADE)
    return 10 ** (np.arange(first, max(last, first + 1) + 1) / BINS_PER_DECADE)


def limits(traces: Sequence[Trace], room_low: float = 1.0, room_high: float = 1.0) -> tuple[float, float]:
    """From the fastest to the slowest event, with room for labels beside p50 and p99."""
    every = [floored(trace.latency) for trace in traces]
    low = min(min(np.percentile(latency, 0.1), np.percentile(latency, MEDIAN) / room_low) for latency in every)
    high = max(max(latency.max(), np.percentile(latency, TAIL) * room_high) for latency in every)
    return float(low) / 1.15, float(high) * 1.15


def some_of(count: int) -> np.ndarray:
    """The same few of many, every time."""
    if count <= POINTS:
        return np.arange(count)
    return np.sort(np.random.default_rng(1).choice(count, POINTS, replace=False))


def percentile_line(
    ax: Axes, x: np.ndarray, values: np.ndarray, look: Look, which: float, size: float, **more: object
) -> list[Line2D]:
    """The median solid and filled, the tail dashed and hollow."""
    return ax.plot(
        x,
        floored(values),
        color=look.colour,
        linestyle=LINES[which],
        marker=look.marker,
        markersize=size,
        markerfacecolor=look.colour if which == MEDIAN else "white",
        **more,
    )
