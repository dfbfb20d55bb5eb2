"""Gantt figures of stages and tasks: which slot worked for which stage, and when. Static and live."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from pyspark.sql import SparkSession

from helpers.evidence.stages import StageRecorder, Task, Timeline
from helpers.figures.axes import bins, log_ms
from helpers.figures.display import as_png
from helpers.figures.live import LiveFigure
from helpers.figures.looks import Look, look_of, looks
from helpers.figures.style import DPI, INK, WIDTH, new_figure, style
from helpers.ruler.load import Load
from helpers.ruler.probe import Probe
from helpers.ruler.statistics import ms
from helpers.ruler.tally import floored
from helpers.ruler.trace import Trace

# One colour per place in the plan; light and dark, so that they differ in grey, too.
ROLES = ("#F0C800", "#44327A", "#8FD0C0", "#B0507A")
NAMES = ("stage A: reads Kafka, sends to the shuffle", "stage B: takes from the shuffle, counts, writes Kafka")
LIVE_SECONDS = 6.0
MARGIN = 0.3  # the last moments of a run that is stopped look ragged


def gantt(
    timelines: Sequence[Timeline],
    traces: Sequence[Trace] = (),
    seconds: float = 2.0,
    names: Sequence[str] = NAMES,
    title: str = "Who works when",
) -> Figure:
    """The last seconds of each run, slot by slot, on one time axis; beside it the latencies, if given."""
    with style():
        figure = new_figure("stages and tasks over time", 1.4 + 2.0 * len(timelines))
        columns = {"ncols": 2, "width_ratios": [1.5, 1]} if traces else {"ncols": 1}
        panels = figure.subplots(len(timelines), sharex="col", squeeze=False, **columns)
        for (left, *_), timeline in zip(panels, timelines, strict=True):
            _bars(left, timeline, seconds)
        panels[-1][0].set_xlabel("time (s)")
        panels[0][0].set_title(title, pad=10)
        if traces:
            _histograms([right for _, right in panels], traces)
        used = range(max([stage.role for timeline in timelines for stage in timeline.stages], default=0) + 1)
        keys = [Patch(facecolor=ROLES[role % 4], edgecolor=INK, label=_name(names, role)) for role in used]
        figure.legend(handles=keys, loc="outside lower left", ncols=1 if len(used) > 1 else 2, borderaxespad=0)
    return figure


def _name(names: Sequence[str], role: int) -> str:
    return names[role] if role < len(names) else f"stage {'ABCDEFGH'[role]}"


def _bars(ax: Axes, timeline: Timeline, seconds: float) -> None:
    roles = {stage.id: stage.role for stage in timeline.stages}
    last = max((task.end for task in timeline.tasks), default=0.0)
    first = last - seconds - MARGIN
    for task in timeline.tasks:
        if task.end >= first:
            _bar(ax, task, roles[task.stage], first)
    rows = max([timeline.slots] + [task.slot + 1 for task in timeline.tasks])
    ax.set_xlim(0, seconds)
    ax.set_ylim(rows - 0.4, -0.6)
    ax.set_yticks(range(rows), [str(number + 1) for number in range(rows)])
    ax.set_ylabel("slot")
    ax.grid(False, axis="y")
    _headline(ax, timeline.name, look_of(timeline.name))


def _bar(ax: Axes, task: Task, role: int, first: float) -> None:
    begin, end = max(task.begin - first, -1.0), task.end - first
    ax.barh(task.slot, end - begin, 0.72, begin, color=ROLES[role % 4], edgecolor=INK, linewidth=0.8, zorder=2)


def _histograms(panels: Sequence[Axes], traces: Sequence[Trace]) -> None:
    """The latency distribution of each run, on one log axis."""
    every = np.concatenate([floored(trace.latency) for trace in traces])
    edges = bins(every.min() / 1.3, every.max() * 1.3)
    for ax, trace, look in zip(panels, traces, looks(traces), strict=True):
        counts, _ = np.histogram(floored(trace.latency), edges)
        ax.stairs(100 * counts / len(trace.samples), edges, fill=True, color=look.colour, alpha=0.6)
        log_ms(ax, "x", edges[0], edges[-1], "latency (ms, log scale)" if ax is panels[-1] else "")
        ax.tick_params(axis="x", which="both", labelbottom=ax is panels[-1])
        ax.set_yticks([])
        ax.set_ylabel("events")
        _headline(ax, f"p50 {ms(trace.p50)}, p99 {ms(trace.p99)} ms", look)


def _headline(ax: Axes, words: str, look: Look) -> None:
    """Above the panel, at its right end, in the mode's colour."""
    above = {"xycoords": "axes fraction", "textcoords": "offset points", "ha": "right", "va": "bottom"}
    ax.annotate(words, (1, 1), (-2, 3), weight="bold", color=look.text, **above)


class LiveGantt(LiveFigure):
    """The slots of a run while it goes on: the last seconds, drawn about once a second."""

    alt, size = "live stages and tasks", (WIDTH, 3.4)

    def __init__(self, spark: SparkSession) -> None:
        self._recorder = StageRecorder(spark)
        self._drawn: Timeline | None = None
        super().__init__(self._recorder)

    @property
    def timeline(self) -> Timeline:
        """The run as Spark's page told it last."""
        return self._recorder.timeline

    @property
    def most_active(self) -> int:
        """How many stages Spark's page called ACTIVE at one reading, at most."""
        return self._recorder.most_active

    def _begin(self, name: str, load: Load) -> None:
        self._in_a_new_cell()
        self._draw("starting")

    def _look(self, probe: Probe) -> None:
        if self.timeline is not self._drawn:
            self._draw(probe.status["phase"])

    def _end(self, trace: Trace | None) -> None:
        self._draw("stopped" if trace is None else "done")

    def _draw(self, phase: str) -> None:
        self._drawn = self.timeline
        title = f"{phase} · stages active: {len(self.timeline.active)} · slots held: {self.timeline.slots_held}"
        figure = gantt([self.timeline], seconds=LIVE_SECONDS, title=title)
        figure.set_size_inches(*self.size)
        self._show(as_png(figure, DPI))
