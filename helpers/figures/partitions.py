"""Bars per partition: how much of what Kafka has a query has read."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from helpers.evidence.partitions import Coverage
from helpers.figures.looks import look_of
from helpers.figures.style import INK, new_figure, style


def coverage_bars(coverages: Sequence[Coverage], title: str = "") -> Figure:
    """One panel each: a bar per partition, filled as far as it was read; above it what that comes to."""
    with style():
        figure = new_figure("what was read of each partition", 4.4)
        widths = [len(one.newest) + 1 for one in coverages]
        panels = figure.subplots(1, len(coverages), sharey=True, squeeze=False, width_ratios=widths)[0]
        for ax, coverage in zip(panels, coverages, strict=True):
            _bars(ax, coverage)
        panels[0].set_ylabel("events (filled: read)")
        figure.suptitle(title or _headline(coverages), x=0.01, ha="left", weight="bold", size=17)
    return figure


def _headline(coverages: Sequence[Coverage]) -> str:
    worst = max(coverages, key=lambda one: len(one.unread))
    if not worst.unread:
        return "Every partition was read"
    return f"{worst.name} never read {len(worst.unread)} of {len(worst.newest)} partitions"


def _bars(ax: Axes, coverage: Coverage) -> None:
    place, look = range(len(coverage.newest)), look_of(coverage.name)
    ax.bar(place, list(coverage.newest.values()), 0.72, color="white", edgecolor=INK, linestyle="--", zorder=2)
    read = [coverage.last[part] for part in coverage.newest]
    ax.bar(place, read, 0.72, color=look.colour, edgecolor=INK, zorder=3)
    for at, value in zip(place, read, strict=True):
        ax.annotate(str(value), (at, value), (0, 4), textcoords="offset points", ha="center", weight="bold", zorder=4)
    ax.set_ylim(0, 1.15 * max([*coverage.newest.values(), 1]))
    ax.set_xticks(place, [str(part) for part in coverage.newest])
    ax.grid(False, axis="x")
    ax.set_xlabel(f"partition, {coverage.slots} slots")
    ax.set_title(coverage.name, color=look.text, size=14)
