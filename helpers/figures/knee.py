"""Figures of lesson 07: latency and cost against the load, and what a dashboard sees between two reports."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter

from helpers.evidence import batches
from helpers.evidence.lag import Seen
from helpers.figures.axes import LINES, TAIL, log_ms, measured_seconds, percentile_line, plain
from helpers.figures.looks import look_of
from helpers.figures.style import HEIGHT, INK, legend, new_figure, style
from helpers.ruler.statistics import HEADLINE, ms
from helpers.ruler.tally import floored
from helpers.ruler.trace import Trace


def knee(runs: Mapping[str, Sequence[Trace]], capacity: float, title: str | None = None) -> Figure:
    """p50 and p99 of each mode against the offered load, crossed where the backlog grew. Below, what an event costs."""
    with style():
        figure = new_figure("latency against the load", HEIGHT + 2.2)
        top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1.3])
        every: list[float] = []
        handles: list[Line2D] = []
        for name, traces in runs.items():
            look = look_of(name)
            handles.append(Line2D([], [], color=look.colour, marker=look.marker, markersize=8, label=name))
            load = np.array([trace.meta["load"]["rate"] for trace in traces], float)
            for which in HEADLINE.values():
                values = floored(np.array([trace.percentile(which) for trace in traces]))
                percentile_line(top, load, values, look, which, 8)
                every += values.tolist()
            lost = [number for number, trace in enumerate(traces) if not trace.steady]
            peaks = floored(np.array([traces[number].percentile(TAIL) for number in lost]))
            top.plot(load[lost], peaks * 1.7, "x", color=look.colour, markersize=12, markeredgewidth=3)
            every += (2 * peaks).tolist()
            bottom.plot(load, [trace.cpu_per_million for trace in traces], marker=look.marker, color=look.colour)
        for ax in (top, bottom):
            ax.axvline(capacity, color=INK, linewidth=1.3, linestyle=(0, (5, 2)), zorder=1)
        handles += [Line2D([], [], color=INK, linestyle=LINES[which], label=name) for name, which in HEADLINE.items()]
        handles.append(Line2D([], [], marker="x", linestyle="", color=INK, markersize=10, label="its backlog grows"))
        log_ms(top, "y", min(every) / 2, max(every) * 2)
        bottom.set_ylim(0, None)
        bottom.set_ylabel("CPU s per\nmillion events")
        for axis in (bottom.xaxis, bottom.yaxis):
            axis.set_major_formatter(FuncFormatter(plain))
        bottom.set_xlabel("offered load (events/s); dashed: what one task can do")
        figure.align_ylabels()
        medians = " and ".join(ms(traces[0].p50) for traces in runs.values())
        legend(top, title or f"At the least load: medians of {medians} ms", handles)
    return figure


def blind(trace: Trace, seen: Sequence[Seen], title: str = "What you know, and when") -> Figure:
    """The lag by Kafka's offsets, look by look, and the moments at which Spark reported anything at all."""
    with style():
        figure = new_figure("lag, and Spark's reports")
        ax = figure.subplots()
        at = [one.at for one in seen]
        ax.plot(at, [one.lag for one in seen], "o-", color="#882255", markersize=6, label="lag, from Kafka's offsets")
        reports = batches.ends(trace)
        lines = [
            ax.axvline(end, color=INK, linewidth=2, linestyle=(0, (5, 2)), label="Spark reports") for end in reports
        ]
        measured_seconds(ax, trace.rounds[0]["measure_to"] - trace.rounds[0]["measure_from"])
        ax.set_ylim(0, None)
        ax.set_xlabel("measured time (s)")
        ax.set_ylabel("events without a result")
        legend(ax, title, [*ax.get_lines()[:1], *lines[:1]])
    return figure
