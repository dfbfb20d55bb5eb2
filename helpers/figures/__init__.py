"""What people see. Notebooks import from here; each module is one kind of figure.

Each function takes what was measured and returns a matplotlib Figure. `show(figure)` puts it into a notebook,
`as_png(figure)` into a file. What is called Live… changes while a run goes on: give it to `measure` as its watch.
"""

from helpers.figures.checkpoint import file_times, interval_panels, pause_bars
from helpers.figures.clocks import clocks
from helpers.figures.crash import crash_timeline, outage_timeline, repeats
from helpers.figures.dashboard import dashboard, waterfall
from helpers.figures.display import as_png, show
from helpers.figures.intervals import folded, tail_curves
from helpers.figures.knee import blind, knee
from helpers.figures.ladder import ladder
from helpers.figures.latency import distributions, nines, over_time, staircase
from helpers.figures.live import LiveView
from helpers.figures.partitions import coverage_bars
from helpers.figures.phases import tax_bars
from helpers.figures.shuffle import LiveFiles
from helpers.figures.stages import LiveGantt, gantt
from helpers.figures.sweep import u_curve

__all__ = [
    "LiveFiles",
    "LiveGantt",
    "LiveView",
    "as_png",
    "blind",
    "clocks",
    "coverage_bars",
    "crash_timeline",
    "dashboard",
    "distributions",
    "file_times",
    "folded",
    "gantt",
    "interval_panels",
    "knee",
    "ladder",
    "nines",
    "outage_timeline",
    "over_time",
    "pause_bars",
    "repeats",
    "show",
    "staircase",
    "tail_curves",
    "tax_bars",
    "u_curve",
    "waterfall",
]
