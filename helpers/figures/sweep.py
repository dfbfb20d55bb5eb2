"""One setting, swept: latency against it, and below it what each value costs."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from helpers.figures.axes import LINES, TAIL, log_ms, percentile_line, plain
from helpers.figures.looks import looks
from helpers.figures.style import HEIGHT, legend, new_figure, style
from helpers.ruler.statistics import HEADLINE, ms
from helpers.ruler.tally import FLOOR, floored
from helpers.ruler.trace import Trace


def u_curve(
    x: Sequence[float],
    traces: Sequence[Trace],
    xlabel: str = "requested trigger interval (ms)",
    busy: Sequence[float] | None = None,
    reference: Trace | None = None,
    title: str = "A shorter trigger stops helping",
    below: dict[str, Sequence[float]] | None = None,
) -> Figure:
    """p50 and p99 against a setting; `reference` as a level line.

    Below it, as bars: the share of time busy (0 to 1), or whatever else a setting costs, by its axis label.
    """
    costs = dict(below or {}) | ({"busy (%)": [100 * share for share in busy]} if busy is not None else {})
    with style():
        figure = new_figure("latency against the trigger interval", HEIGHT + max(0.4, 1.6 * len(costs)))
        heights = [3] + [1.1] * len(costs)
        panels = figure.subplots(len(heights), 1, sharex=True, height_ratios=heights, squeeze=False).flat
        top, bottom = panels[0], panels[-1]
        values = _curves(top, traces) + (_levels(top, reference) if reference is not None else [])
        log_ms(top, "y", min(values) / 2.5, max(values) * 3)
        top.grid(False, axis="x")
        top.set_xlim(-0.5, len(x) - 0.5)
        for panel, (label, bars) in zip(panels[1:], costs.items(), strict=True):
            _cost(panel, label, bars)
        if busy is not None:
            bottom.set_ylim(0, 135)
            bottom.set_yticks([0, 50, 100])
        bottom.set_xticks(range(len(x)), [plain(value) for value in x])
        bottom.set_xlabel(xlabel)
        figure.align_ylabels()
        legend(top, title)
    return figure


def _curves(ax: Axes, traces: Sequence[Trace]) -> list[float]:
    """A line for each headline percentile, its values beside it; returns them."""
    look, place = looks([traces[0]])[0], np.arange(len(traces))
    drawn: list[float] = []
    for name, which in HEADLINE.items():
        values = floored(np.array([trace.percentile(which) for trace in traces]))
        percentile_line(ax, place, values, look, which, 9, label=name)
        away, side = (9, "bottom") if which == TAIL else (-9, "top")
        for at, value in zip(place, values, strict=True):
            ax.annotate(ms(value), (at, value), (0, away), textcoords="offset points", ha="center", va=side)
        drawn += values.tolist()
    return drawn


def _levels(ax: Axes, reference: Trace) -> list[float]:
    """A level line for each headline percentile of a run to compare with; returns where."""
    look = looks([reference])[0]
    words = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points", "ha": "right", "va": "bottom"}
    drawn = []
    for name, which in HEADLINE.items():
        level = max(reference.percentile(which), FLOOR)
        ax.axhline(level, color=look.colour, linestyle=LINES[which])
        ax.annotate(f"{reference.name} {name} {ms(level)} ms", (1, level), (-4, 4), color=look.text, **words)
        drawn.append(level)
    return drawn


def _cost(ax: Axes, label: str, values: Sequence[float]) -> None:
    """A bar for each value of the setting, with its number."""
    place = np.arange(len(values))
    ax.bar(place, values, 0.6, color="#8A8A8A", zorder=2)
    for at, value in zip(place, values, strict=True):
        text = plain(round(value)) if max(values) >= 10 else f"{value:.2f}"
        ax.annotate(text, (at, value), (0, 3), textcoords="offset points", ha="center")
    ax.set_ylim(0, 1.35 * max(values))
    ax.yaxis.set_major_locator(MaxNLocator(2))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    ax.set_ylabel(label)
    ax.grid(False, axis="x")
