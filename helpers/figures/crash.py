"""Figures of lesson 05: one crash or one outage on a time axis, and what many crashes repeated."""

from itertools import cycle, pairwise
from typing import Protocol

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from helpers.errors import LabError
from helpers.evidence.crashes import Crash, Row
from helpers.figures.axes import plain
from helpers.figures.looks import look_of, looks
from helpers.figures.style import HEIGHT, INK, legend, new_figure, style

BEFORE, AFTER = 9.0, 4.0  # seconds shown before the kill, and after the first row that follows it
AGAIN = "#882255"


class Crashed(Protocol):
    """What is drawn of a pipeline: its kills, every row that came out of it, and when each event was sent."""

    sent_at: list[float]
    rows: list[Row]

    @property
    def crashes(self) -> list[Crash]: ...


def crash_timeline(pipeline: Crashed, number: int = 0) -> Figure:
    """Event numbers against time: sent, out for the first time, out again; the checkpoint and the kill."""
    if number >= len(pipeline.crashes):
        raise LabError(f"There is no crash number {number}: this query was killed {len(pipeline.crashes)} times.")
    crash = pipeline.crashes[number]
    until = max(1.0, min(crash.away + AFTER, pipeline.rows[-1].at - crash.at + 0.5))
    with style():
        figure = new_figure("one crash on a time axis", HEIGHT + 0.6)
        ax = figure.subplots()
        _events(ax, pipeline, crash.at, until)
        ax.axvline(-crash.since, color=INK, linestyle=":", label="last checkpoint is on disk")
        if crash.end < len(pipeline.sent_at):  # where it ends was settled a moment before it was written
            settled = pipeline.sent_at[crash.end] - crash.at
            ax.plot(settled, crash.end, "o", color=INK, markerfacecolor="white", markersize=10, label="… and ends here")
            ax.hlines(crash.end, settled, crash.away, color=INK, linestyle=":")
        ax.axvline(0, color=INK, linewidth=2.6, label=crash.how)
        _away(ax, crash.away, "no query")
        title = f"Killed {crash.since:.1f} s after a checkpoint: {crash.repeated:,} rows came twice"
        _finish(ax, until, f"time since {crash.how} (s)", title)
    return figure


def outage_timeline(pipeline: Crashed, at: float, seconds: float) -> Figure:
    """Event numbers against time while the broker was away: from the moment `at`, for so many seconds."""
    back = min((row.at - at for row in pipeline.rows if row.at > at + seconds), default=seconds)
    until = max(1.0, min(back + AFTER, pipeline.rows[-1].at - at + 0.5))
    with style():
        figure = new_figure("the broker's outage on a time axis", HEIGHT)
        ax = figure.subplots()
        _events(ax, pipeline, at, until)
        ax.axvline(0, color=INK, linewidth=2.6, label="the broker is killed")
        _away(ax, seconds, "no broker")
        _finish(ax, until, "time since the broker's kill (s)", _outage(pipeline, at, seconds))
    return figure


def _outage(pipeline: Crashed, at: float, seconds: float) -> str:
    """What the rows say: how long none came, and whether any came twice."""
    moments = [row.at for row in pipeline.rows if row.at > at - 1]
    gap = max((later - earlier for earlier, later in pairwise(moments)), default=0.0)
    again = sum(row.again for row in pipeline.rows if row.at > at)
    return f"Broker away for {seconds:.0f} s: no result for {gap:.0f} s, then {again:,} came twice"


def _events(ax: Axes, pipeline: Crashed, at: float, until: float) -> None:
    sent = np.array(pipeline.sent_at) - at
    shown = (sent >= -BEFORE) & (sent <= until)
    ax.plot(sent[shown], np.arange(len(sent))[shown], color="#999999", linewidth=2, label="event was sent")
    rows = [row for row in pipeline.rows if -BEFORE <= row.at - at <= until]
    for again, name, colour, marker, size in (
        (False, "result, first time", look_of("real-time").colour, ".", 5),
        (True, "result, once more", AGAIN, "x", 6),
    ):
        some = [row for row in rows if row.again == again]
        x, y = [row.at - at for row in some], [row.json["event_id"] for row in some]
        ax.plot(x, y, marker, color=colour, markersize=size, label=name, rasterized=True)


def _away(ax: Axes, seconds: float, who: str) -> None:
    ax.axvspan(0, seconds, color="#EEEEEE", zorder=0)
    ax.annotate(who, (seconds / 2, 0.04), xycoords=("data", "axes fraction"), ha="center")


def _finish(ax: Axes, until: float, time: str, title: str) -> None:
    first = min(ax.lines[0].get_xdata(), default=-BEFORE)  # of what was sent
    ax.set_xlim(max(-BEFORE, first - 0.5), until)
    ax.xaxis.set_major_locator(MaxNLocator(10, integer=True))
    ax.yaxis.set_major_formatter(FuncFormatter(plain))
    ax.set_xlabel(time)
    ax.set_ylabel("event number")
    legend(ax, title)
    for handle in ax.get_legend().legend_handles:
        handle.set_markersize(9)


def repeats(groups: dict[str, list[Crash]], rate: float) -> Figure:
    """Repeated rows against the age of the last checkpoint, one marker per crash; the line is rate × time.

    Markers are hollow and of different shapes: where two meet, both can be seen.
    """
    every = [crash for crashes in groups.values() for crash in crashes]
    with style():
        figure = new_figure("repeated rows against the age of the checkpoint", HEIGHT + 0.4)
        ax = figure.subplots()
        end = 1.1 * max(crash.since for crash in every)
        ax.plot([0, end], [0, rate * end], color="#999999", linestyle="--", label=f"{rate:g} events/s × time", zorder=1)
        fewest, most = (some(crash.repeated for crash in every) for some in (min, max))
        top = 1.06 * max(rate * end, most)
        for (name, crashes), look, marker in zip(groups.items(), looks(list(groups)), cycle("oDs^"), strict=False):
            x, y = [crash.since for crash in crashes], [crash.repeated for crash in crashes]
            hollow = {"markerfacecolor": "none", "markeredgecolor": look.text, "markeredgewidth": 2.6, "markersize": 13}
            ax.plot(x, y, marker, color=look.text, label=name, zorder=3, **hollow)
        ax.set_xlim(-0.03 * end, end)
        ax.set_ylim(-0.04 * top, top)
        ax.yaxis.set_major_formatter(FuncFormatter(plain))
        ax.set_xlabel("age of the last completed checkpoint at the end (s)")
        ax.set_ylabel("result rows written twice")
        legend(ax, f"{len(every)} times ended: from {fewest:,} to {most:,} rows came twice")
    return figure
