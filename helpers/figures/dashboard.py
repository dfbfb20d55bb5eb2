"""Figures of lesson 06: a heat map of latencies with the suspects in strips below, and where an event's time went."""

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from helpers.engines.machine import core_count
from helpers.evidence import suspects
from helpers.figures.axes import bins, log_ms, measured_seconds, plain
from helpers.figures.looks import is_light, mix
from helpers.figures.style import INK, WIDTH, legend, new_figure, style
from helpers.ruler.statistics import ms
from helpers.ruler.tally import floored
from helpers.ruler.trace import Trace

COLUMNS = 160  # of the heat map, over the whole time
STRIPS = {"boundary": "#222222", "Spark's collector": "#D55E00", "Kafka's collector": "#CC79A7"}
CPU = ("cores", "machine_cores", "other_cores")
WHOSE = {"Spark": "#0072B2", "the lab": "#BBBBBB", "others": "#E69F00"}
LEGS = {"late in sending": "#AAAAAA", "to Kafka": "#E69F00", "Kafka to Kafka": "#0072B2"}


def dashboard(
    trace: Trace, over_ms: float = suspects.SLOW_MS, mark: tuple[float, float] | None = None, title: str | None = None
) -> Figure:
    """Every event in a heat map (when it was due, how long it took); below, on the same axis, who was about."""
    with style():
        figure = new_figure("latency heat map and suspects", 8.2)
        panels = figure.subplots(4, 1, sharex=True, height_ratios=[4.2, 1.2, 1.4, 1.4])
        heat, who, cpu, backlog = panels
        seconds = float(sum(lap["measure_to"] - lap["measure_from"] for lap in trace.rounds))
        _heat(figure, heat, trace, seconds)
        _strips(who, trace)
        _cpu(cpu, trace)
        _backlog(backlog, trace, seconds)
        if mark is not None:
            for panel in panels:
                panel.axvspan(*mark, color="#F0E442", alpha=0.35, zorder=0.5)
                panel.axvspan(*mark, fill=False, edgecolor=INK, linewidth=1.5, zorder=5)
        measured_seconds(backlog, seconds)
        backlog.set_xlabel("measured time (s)")
        slow = int((trace.latency > over_ms).sum())
        said = f"{slow:,} of {len(trace.samples):,} events took over {over_ms:.0f} ms: who was about?"
        heat.set_title(title or said, pad=10)
        figure.align_ylabels()
    return figure


def _heat(figure: Figure, ax: Axes, trace: Trace, seconds: float) -> None:
    latency = floored(trace.latency)
    edges = bins(latency.min() / 1.2, latency.max() * 1.2)[::2]
    columns = np.linspace(0, seconds, COLUMNS + 1)
    counts, _, _ = np.histogram2d(trace.elapsed(), latency, [columns, edges])
    shown = np.ma.masked_equal(counts.T, 0)
    mesh = ax.pcolormesh(
        columns, edges, shown, cmap="cividis_r", norm=LogNorm(1, max(2, counts.max())), rasterized=True
    )
    bar = figure.colorbar(mesh, ax=ax, pad=0.01, aspect=14)
    bar.set_label("events")
    bar.ax.yaxis.set_major_formatter(FuncFormatter(plain))
    log_ms(ax, "y", edges[0], edges[-1])
    ax.grid(False)


def _strips(ax: Axes, trace: Trace) -> None:
    found = suspects.happenings(trace)
    for row, (who, colour) in enumerate(STRIPS.items()):
        for one in found:
            if one.who == who:
                width = max(one.end - one.begin, 0.03)  # a hair must be seen on a projector
                ax.barh(row, width, 0.8, one.begin, color=colour, zorder=2)
    ax.set_yticks(range(len(STRIPS)), STRIPS)
    ax.set_ylim(len(STRIPS) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0, labelsize=13)
    ax.grid(False, axis="x")


def _cpu(ax: Axes, trace: Trace) -> None:
    cores = core_count()
    for lap, begin in zip(trace.rounds, trace.round_begins(), strict=True):
        looks = lap.get("cpu", [])
        if not looks:
            continue
        at = [look["since"] - lap["measure_from"] + begin for look in looks]
        at.append(looks[-1]["until"] - lap["measure_from"] + begin)
        spark, every, others = (np.array([look[name] for look in looks]) for name in CPU)
        for height, colour in zip((every, every - others.clip(0), spark), reversed(WHOSE.values()), strict=True):
            ax.stairs(height, at, fill=True, color=colour)
    ax.axhline(cores, color=INK, linewidth=1.2, linestyle=(0, (5, 2)))
    ax.set_ylim(0, 1.25 * cores)
    ax.yaxis.set_major_locator(MaxNLocator(2, integer=True))
    ax.set_ylabel("cores")
    for place, (name, colour) in enumerate(WHOSE.items()):
        where = {"fontsize": 13, "va": "center", "xycoords": "axes fraction"}
        ax.annotate(name, (1.005, 0.15 + 0.35 * place), color=mix(colour, "black", 0.3), **where)


def _backlog(ax: Axes, trace: Trace, seconds: float) -> None:
    """Events that were due and whose results were not there yet."""
    due = np.sort(trace.elapsed())
    done = np.sort(trace.elapsed() + trace.latency / 1000)
    at = np.linspace(0, seconds, 4 * COLUMNS)
    waiting = np.searchsorted(due, at, side="right") - np.searchsorted(done, at, side="right")
    ax.fill_between(at, waiting, color="#882255", linewidth=0)
    ax.set_ylim(0, max(1.0, 1.15 * waiting.max()))
    ax.yaxis.set_major_locator(MaxNLocator(2, integer=True))
    ax.set_ylabel("backlog")


def waterfall(bars: Mapping[str, dict[str, float]], title: str = "Where the time went") -> Figure:
    """Where the time of some events went: a stacked bar for each, on a scale of its own, in the parts of their way.

    A bar of NaN stands for no event: it is left out.
    """
    bars = {name: parts for name, parts in bars.items() if np.isfinite(list(parts.values())).all()}
    with style():
        figure = new_figure("where an event's time went", 1.4 + 0.8 * len(bars))
        panels = figure.subplots(len(bars), 1, squeeze=False)[:, 0]
        for ax, (name, parts) in zip(panels, bars.items(), strict=True):
            left, whole = 0.0, sum(max(0.0, width) for width in parts.values()) or 1.0
            for leg, width in parts.items():
                width = max(0.0, width)
                ax.barh(0, width, 0.7, left, color=LEGS[leg], edgecolor="white", linewidth=1.2, label=leg)
                if width > 0.07 * whole:
                    colour = INK if is_light(LEGS[leg]) else "white"
                    ax.text(left + width / 2, 0, ms(width), ha="center", va="center", color=colour)
                left += width
            ax.annotate(f"{ms(left)} ms", (left, 0), (6, 0), textcoords="offset points", va="center", weight="bold")
            ax.set_xlim(0, 1.15 * whole)
            ax.set_yticks([0], [name])
            ax.set_xticks([])
            ax.tick_params(axis="y", length=0, labelsize=14)
            ax.grid(False)
            ax.spines[["left", "bottom"]].set_visible(False)
        panels[-1].set_xlabel("time (ms), each bar on a scale of its own")
        legend(panels[0], title, inches=WIDTH - 2.4)
    return figure
