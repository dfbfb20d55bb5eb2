"""Figures of lesson 05: one crash on a time axis, and what many crashes repeated."""

from itertools import cycle
from typing import Protocol

import numpy as np
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


def crash_timeline(pipeline: Crashed, number: int = 0, title: str = "One crash") -> Figure:
    """Event numbers against time: sent, out for the first time, out again; the checkpoint and the kill."""
    if number >= len(pipeline.crashes):
        raise LabError(f"There is no crash number {number}: this query was killed {len(pipeline.crashes)} times.")
    crash = pipeline.crashes[number]
    until = max(1.0, min(crash.away + AFTER, pipeline.rows[-1].at - crash.at + 0.5))
    rows = [row for row in pipeline.rows if -BEFORE <= row.at - crash.at <= until]
    with style():
        figure = new_figure("one crash on a time axis", HEIGHT + 0.6)
        ax = figure.subplots()
        sent = np.array(pipeline.sent_at) - crash.at
        shown = (sent >= -BEFORE) & (sent <= until)
        ax.plot(sent[shown], np.arange(len(sent))[shown], color="#999999", linewidth=2, label="event was sent")
        look = look_of("real-time")
        for again, name, colour, marker, size in (
            (False, "result, first time", look.colour, ".", 5),
            (True, "result, once more", AGAIN, "x", 6),
        ):
            some = [row for row in rows if row.again == again]
            x, y = [row.at - crash.at for row in some], [row.json["event_id"] for row in some]
            ax.plot(x, y, marker, color=colour, markersize=size, label=name, rasterized=True)
        ax.axvline(-crash.since, color=INK, linestyle=":", label="last checkpoint")
        ax.hlines(crash.end, -crash.since, crash.away, color=INK, linestyle=":")
        ax.axvline(0, color=INK, linewidth=2.6, label="kill -9")
        ax.axvspan(0, crash.away, color="#EEEEEE", zorder=0)
        ax.annotate("no query", (crash.away / 2, 0.04), xycoords=("data", "axes fraction"), ha="center")
        ax.set_xlim(-BEFORE, until)
        ax.xaxis.set_major_locator(MaxNLocator(10, integer=True))
        ax.yaxis.set_major_formatter(FuncFormatter(plain))
        ax.set_xlabel("time since the kill (s)")
        ax.set_ylabel("event number")
        legend(ax, title)
        for handle in ax.get_legend().legend_handles:
            handle.set_markersize(9)
    return figure


def repeats(groups: dict[str, list[Crash]], rate: float, title: str = "What a crash repeats") -> Figure:
    """Repeated rows against the age of the last checkpoint, one marker per crash; the line is rate × time."""
    with style():
        figure = new_figure("repeated rows against the age of the checkpoint", HEIGHT + 0.4)
        ax = figure.subplots()
        end = 1.1 * max(crash.since for crashes in groups.values() for crash in crashes)
        ax.plot([0, end], [0, rate * end], color="#999999", linestyle="--", label=f"{rate:g} events/s × time", zorder=1)
        top = 1.06 * max(rate * end, *(crash.repeated for crashes in groups.values() for crash in crashes))
        for (name, crashes), look, marker in zip(groups.items(), looks(list(groups)), cycle("oDs^"), strict=False):
            x, y = [crash.since for crash in crashes], [crash.repeated for crash in crashes]
            ax.plot(x, y, marker, color=look.colour, markersize=13, markeredgecolor="white", label=name)
        ax.set_xlim(-0.03 * end, end)
        ax.set_ylim(-0.04 * top, top)
        ax.yaxis.set_major_formatter(FuncFormatter(plain))
        ax.set_xlabel("age of the last completed checkpoint at the kill (s)")
        ax.set_ylabel("result rows written twice")
        legend(ax, title)
    return figure
