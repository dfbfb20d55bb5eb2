"""How figures look: sizes, letters, the title with its legend."""

from contextlib import AbstractContextManager

import matplotlib.style
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

WIDTH, HEIGHT, DPI = 10.0, 4.5, 110
INK, FAINT = "#222222", "#D9D9D9"
STYLE = {
    "figure.facecolor": "white",
    "figure.dpi": DPI,
    "savefig.facecolor": "white",
    "font.size": 13,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.labelsize": 14,
    "axes.titlesize": 17,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.edgecolor": "#777777",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": "#E3E3E3",
    "grid.linewidth": 0.8,
    "xtick.color": "#777777",
    "ytick.color": "#777777",
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.labelsize": 13,
    "ytick.labelsize": 13,
    "legend.frameon": False,
    "legend.fontsize": 13,
    "lines.linewidth": 2.4,
}


def style() -> AbstractContextManager:
    """The series' look, whatever a notebook did to matplotlib's settings before."""
    return matplotlib.style.context(["default", STYLE])


def new_figure(label: str, height: float = HEIGHT) -> Figure:
    """An empty figure that belongs to nobody else: without pyplot nothing leaks and no window opens."""
    figure = Figure(figsize=(WIDTH, height), dpi=DPI, layout="constrained")
    figure.get_layout_engine().set(w_pad=0.12, h_pad=0.1)
    figure.set_label(label)
    return figure


def legend(ax: Axes, title: str, handles: list | None = None, inches: float = WIDTH - 1.4) -> None:
    """The title, and under it what everything is called: never in the way of the data."""
    shown = handles or ax.get_legend_handles_labels()[0]
    columns = _columns([handle.get_label() for handle in shown], inches)
    rows = -(-len(shown) // columns)
    ax.legend(
        handles=shown,
        loc="lower left",
        bbox_to_anchor=(-0.01, 1.0),
        ncols=columns,
        borderaxespad=0.2,
        handlelength=2.2,
        columnspacing=1.6,
    )
    ax.set_title(title, pad=12 + 21 * rows)


def _columns(labels: list[str], inches: float) -> int:
    """How many columns of a legend fit side by side (matplotlib fills them top to bottom)."""
    for columns in range(min(len(labels), 5), 1, -1):
        wide = [max(map(len, part)) for part in np.array_split(labels, columns)]
        if sum(0.088 * letters + 0.85 for letters in wide) <= inches:
            return columns
    return 1
