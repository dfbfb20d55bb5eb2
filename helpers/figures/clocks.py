"""One stream of events, timed by several clocks."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from helpers.figures.axes import some_of
from helpers.figures.style import HEIGHT, legend, new_figure, style

# colour, marker, its size, what is drawn on top: clocks that agree lie on each other, and each must be seen
LOOKS = (("#D55E00", "s", 4, 3), ("#004B76", "^", 4, 3), ("#56B4E9", "o", 11, 2))


def clocks(arrived_ms: Sequence[float], by: Mapping[str, Sequence[float]], title: str | None = None) -> Figure:
    """The "latency" (ms) of each event by each clock, against the second in which the event arrived."""
    at = (np.asarray(arrived_ms, float) - min(arrived_ms)) / 1000
    some = some_of(len(at))
    with style():
        figure = new_figure("one stream, several clocks", HEIGHT)
        ax = figure.subplots()
        for (name, values), (colour, marker, size, order) in zip(by.items(), LOOKS, strict=False):
            of_some = np.asarray(values, float)[some]
            ax.plot(at[some], of_some, marker, color=colour, markersize=size, zorder=order, label=name)
        ax.axhline(0, color="#444444", linewidth=1, zorder=1)
        ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
        ax.set_xlabel("the event arrived at (s)")
        ax.set_ylabel("“latency” (ms)")
        lowest = min(float(np.min(values)) for values in by.values())
        legend(ax, title or f"Down to {lowest:,.0f} ms: an answer before the question")
    return figure
