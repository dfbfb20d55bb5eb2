"""A ladder of baselines: one query, one setting more at each step, and whose milliseconds each step takes away."""

from collections.abc import Sequence

from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from helpers.errors import LabError
from helpers.figures.looks import look_of
from helpers.figures.style import INK, legend, new_figure, style
from helpers.ruler.statistics import ms
from helpers.ruler.trace import Trace

GONE = "#BBBBBB"


def ladder(traces: Sequence[Trace], whose: Sequence[str], title: str = "Whose milliseconds are they?") -> Figure:
    """The median of each step as a bar, its p99 as a mark; hatched, what the step took away, and whose that was."""
    if len(whose) != len(traces) - 1:
        raise LabError(f"{len(traces)} steps have {len(traces) - 1} differences, but {len(whose)} of them are named.")
    with style():
        figure = new_figure("a ladder of baselines", 1.6 + 0.72 * len(traces))
        ax = figure.subplots()
        right = max(trace.p99 for trace in traces)
        before = None
        for row, (trace, name) in enumerate(zip(traces, ("", *whose), strict=True)):
            look = look_of(trace)
            ax.barh(row, trace.p50, 0.62, color=look.colour, zorder=2)
            ax.plot(trace.p99, row, "D", color=look.colour, markersize=9, markerfacecolor="white", zorder=4)
            gone = 0.0 if before is None else before - trace.p50
            if gone > 0:
                ax.barh(row, gone, 0.62, trace.p50, facecolor="none", edgecolor=GONE, hatch="///", zorder=1)
            words = f"p50 {ms(trace.p50)}, p99 {ms(trace.p99)} ms"
            if name:
                words += f"\n{'−' if gone >= 0 else '+'}{ms(abs(gone))} ms: {name}"
            edge = max(trace.p99, trace.p50 + max(gone, 0.0)) + 0.03 * right
            ax.annotate(words, (edge, row), va="center", fontsize=13, linespacing=1.2)
            before = trace.p50
        ax.set_xlim(0, right * 1.75)
        ax.set_yticks(range(len(traces)), [trace.label.replace(", ", ",\n", 1) for trace in traces])
        ax.tick_params(axis="y", length=0, labelsize=13)
        ax.invert_yaxis()
        ax.grid(False, axis="y")
        ax.set_xlabel("latency (ms)")
        handles = [
            Patch(facecolor="#777777", label="median"),
            Line2D([], [], marker="D", linestyle="", markersize=9, markerfacecolor="white", color=INK, label="p99"),
            Patch(facecolor="none", edgecolor=GONE, hatch="///", label="what this step took away from the median"),
        ]
        legend(ax, title, handles)
    return figure
