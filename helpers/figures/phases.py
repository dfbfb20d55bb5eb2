"""A batch, itemised: the milliseconds of each phase of Spark's `durationMs`."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from helpers.figures.looks import is_light
from helpers.figures.style import INK, WIDTH, legend, new_figure, style
from helpers.ruler.statistics import ms

PHASES = {  # in the order in which a micro-batch goes through them
    "latestOffset": "#56B4E9",
    "walCommit": "#E69F00",
    "getBatch": "#F0E442",
    "queryPlanning": "#CC79A7",
    "addBatch": "#0072B2",
    "commitOffsets": "#D55E00",
    "other": "#AAAAAA",
}


def tax_bars(
    names: Sequence[str],
    parts: Sequence[dict[str, float]],
    title: str = "Where a batch spends its time",
    order: Sequence[str] = tuple(PHASES),
) -> Figure:
    """One stacked bar per name: the milliseconds of a batch, by phase of Spark's `durationMs`, in this order.

    What `triggerExecution`, the whole, has beyond the named phases is shown as "other".
    """
    rows = [itemised(part) for part in parts]
    whole = max([sum(row.values()) for row in rows] + [1e-9])
    used = [phase for phase in order if any(row[phase] > 0 for row in rows)] or ["other"]
    with style():
        figure = new_figure("where a batch spends its time", max(3.0, 1.9 + 0.75 * len(names)))
        ax = figure.subplots()
        left = np.zeros(len(names))
        for phase in used:
            width = np.array([row[phase] for row in rows])
            _stack(ax, phase, left, width, whole)
            left += width
        for at, total in enumerate(left):
            ax.annotate(f"{ms(total)} ms", (total, at), (6, 0), textcoords="offset points", va="center", weight="bold")
        ax.set_xlim(0, whole * 1.13)
        ax.set_yticks(range(len(names)), names)
        ax.tick_params(axis="y", length=0, labelsize=14)
        ax.invert_yaxis()
        ax.grid(False, axis="y")
        ax.set_xlabel("time per batch (ms)")
        legend(ax, title, inches=WIDTH - 0.6 - 0.12 * max(len(line) for name in names for line in name.split("\n")))
    return figure


def _stack(ax: Axes, phase: str, left: np.ndarray, width: np.ndarray, whole: float) -> None:
    """One phase of every bar, with its number where there is room for it."""
    place, colour = np.arange(len(left)), PHASES[phase]
    ax.barh(place, width, 0.62, left, color=colour, edgecolor="white", linewidth=1.2, label=phase, zorder=2)
    words = {"ha": "center", "va": "center", "color": INK if is_light(colour) else "white"}
    for at, start, value in zip(place, left, width, strict=True):
        if value / whole > 0.012 * (len(ms(value)) + 0.8):
            ax.text(start + value / 2, at, ms(value), **words)


def itemised(durations: dict[str, float]) -> dict[str, float]:
    """`durationMs` by phase, in order, with the rest of the whole as "other"."""
    named = {phase: float(durations.get(phase, 0)) for phase in PHASES}
    whole = float(durations.get("triggerExecution", 0))
    listed = sum(value for phase, value in durations.items() if phase != "triggerExecution")
    named["other"] += listed - sum(named.values()) + max(0.0, whole - listed)
    return named
