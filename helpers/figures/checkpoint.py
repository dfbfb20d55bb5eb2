"""Figures of lesson 04: pauses at boundaries, files within a batch, what a boundary costs."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from helpers.evidence import batches, checkpoint, pauses
from helpers.figures.axes import limits, log_ms, measured_seconds, some_of
from helpers.figures.looks import look_of
from helpers.figures.phases import tax_bars
from helpers.figures.style import INK, legend, new_figure, style
from helpers.ruler.statistics import ms
from helpers.ruler.tally import floored
from helpers.ruler.trace import Trace

FILES = {"offsets": ("#E69F00", "o"), "state": ("#009E73", "^"), "commits": ("#CC79A7", "D")}
AT_A_BOUNDARY = ("addBatch", "walCommit", "commitOffsets", "other", "latestOffset", "getBatch", "queryPlanning")
PAPER = {"facecolor": "white", "edgecolor": "none", "pad": 1.5, "alpha": 0.9}  # behind words that data may cross


def interval_panels(traces: Sequence[Trace], title: str = "Latency over time (ms, log scale)") -> Figure:
    """One row per trace on the same axes: every event a point, every batch boundary a line."""
    with style():
        figure = new_figure("latency over time, interval by interval", 1.5 + 1.45 * len(traces))
        rows = figure.subplots(len(traces), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
        low, high = limits(traces)
        for ax, trace in zip(rows, traces, strict=True):
            keep = np.union1d(some_of(len(trace.samples)), np.flatnonzero(trace.latency > trace.percentile(97)))
            x, y = trace.elapsed()[keep], floored(trace.latency)[keep]
            colour = look_of(trace).colour
            ax.plot(x, y, ".", color=colour, alpha=0.35, markersize=5, markeredgewidth=0, rasterized=True)
            for at in batches.ends(trace):
                ax.axvline(at, color=INK, linewidth=1.3, linestyle=(0, (5, 2)), zorder=1)
            log_ms(ax, "y", low, high * 6, label="ms")
            words = f"{trace.name}: p50 {ms(trace.p50)} ms, p99 {ms(trace.p99)} ms"
            ax.text(0.008, 0.95, words, transform=ax.transAxes, va="top", weight="bold", bbox=PAPER)
        measured_seconds(rows[-1], max(float(trace.elapsed().max()) for trace in traces))
        rows[-1].set_xlabel("measured time (s); dashed: an interval ends")
        rows[0].set_title(title, pad=10)
    return figure


def file_times(traces: Sequence[Trace], title: str = "When the checkpoint's files appear") -> Figure:
    """One row per trace: where in its batch each file was written, from the batch's start to its end."""
    with style():
        figure = new_figure("when the checkpoint's files appear", 2.1 + 0.85 * len(traces))
        ax = figure.subplots()
        handles, furthest = {}, 100.0
        for row, trace in enumerate(traces):
            ax.hlines(row, 0, 100, color=look_of(trace).colour, linewidth=9, alpha=0.3, zorder=1)
            for (kind, (colour, marker)), nudge in zip(FILES.items(), (-0.16, 0.0, 0.16), strict=True):
                shares = [100 * file.share for file in checkpoint.written(trace, kind)]
                drawn = {"color": colour, "markersize": 11, "markeredgecolor": INK, "zorder": 3}
                (line,) = ax.plot(shares, np.full(len(shares), row + nudge), marker, label=f"{kind}/", **drawn)
                if shares:
                    handles.setdefault(kind, line)
                    furthest = max(furthest, *shares)
        for edge in (0, 100):
            ax.axvline(edge, color=INK, linewidth=1.3, linestyle=(0, (5, 2)), zorder=0)
        ax.set_xlim(-4, furthest + 4)
        ax.set_ylim(len(traces) - 0.5, -0.5)
        ax.set_yticks(range(len(traces)), [trace.name for trace in traces])
        ax.tick_params(axis="y", length=0, labelsize=14)
        ax.grid(False, axis="y")
        ax.xaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{share:.0f} %"))
        ax.set_xlabel("time since the batch began (% of the batch; 100 % is its end)")
        legend(ax, title, list(handles.values()))
    return figure


def pause_bars(
    names: Sequence[str], traces: Sequence[Trace], interval: float, title: str = "What a boundary costs"
) -> Figure:
    """What an interval takes beyond itself, in the order of a boundary; under each name the pause as seen."""
    seen = [np.median([stop.ms for stop in pauses.at_boundaries(trace)] or [0]) for trace in traces]
    labels = [f"{name}\n(no result for {pause:,.0f} ms)" for name, pause in zip(names, seen, strict=True)]
    return tax_bars(labels, [batches.boundary_cost(trace, interval) for trace in traces], title, AT_A_BOUNDARY)
