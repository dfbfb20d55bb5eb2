"""Where a micro-batch shuffle lives: files under spark.local.dir. Counted, and drawn while a query runs."""

import time
from pathlib import Path

from matplotlib.figure import Figure
from pyspark.sql import SparkSession

from helpers.figures.latency import DPI, WIDTH, as_png, looks, new_figure, style
from helpers.figures.live import LiveFigure
from helpers.ruler.probe import Load, Probe
from helpers.ruler.trace import Trace


def shuffle_files(spark: SparkSession) -> dict[str, int]:
    """Every shuffle file that is on disk now, by name, with its size in bytes."""
    found = {}
    for path in Path(spark.conf.get("spark.local.dir")).rglob("shuffle_*"):
        try:
            found[path.name] = path.stat().st_size
        except FileNotFoundError:
            continue  # Spark's cleaner was faster
    return found


class LiveFiles(LiveFigure):
    """How many shuffle files a run has written so far, while it goes on. Several runs share one figure."""

    alt, size = "live shuffle files", (WIDTH, 3.4)

    def __init__(self, spark: SparkSession) -> None:
        super().__init__()
        self._spark = spark
        self.written: dict[str, dict[str, int]] = {}  # by run: the files that it wrote, whether still there or not
        self._points: dict[str, list[tuple[float, int]]] = {}

    def begin(self, setup_name: str, load: Load) -> None:
        self._name, self._began = setup_name, time.monotonic()
        self._before = set(shuffle_files(self._spark))
        self.written[setup_name], self._points[setup_name] = {}, []
        super().begin(setup_name, load)

    def look(self, probe: Probe) -> None:
        self._count()
        super().look(probe)

    def end(self, trace: Trace | None) -> None:
        self._count()
        super().end(trace)

    def _count(self) -> None:
        new = {name: size for name, size in shuffle_files(self._spark).items() if name not in self._before}
        self.written[self._name] |= new
        self._points[self._name].append((time.monotonic() - self._began, len(self.written[self._name])))

    def _begin(self, name: str, load: Load) -> None:
        self._in_a_new_cell()
        self._draw()

    def _look(self, probe: Probe) -> None:
        self._draw()

    def _end(self, trace: Trace | None) -> None:
        self._draw()

    def _draw(self) -> None:
        self._show(as_png(self.figure(), DPI))

    def figure(self) -> Figure:
        """Files written so far against time, one line per run."""
        with style():
            figure = new_figure(self.alt, self.size[1])
            ax = figure.subplots()
            for (name, points), look in zip(self._points.items(), looks(list(self._points)), strict=True):
                seconds, counts = zip(*points, strict=True) if points else ((0,), (0,))
                size = sum(self.written[name].values()) / 1024
                label = f"{name}: {counts[-1]} files, {size:,.1f} KiB"
                ax.plot(seconds, counts, color=look.colour, linestyle=look.line, drawstyle="steps-post", label=label)
                ax.plot(seconds[-1:], counts[-1:], look.marker, color=look.colour, markersize=9)
            ax.set_xlim(0, None)
            ax.set_ylim(-0.5, None)
            ax.set_xlabel("time since the query began (s)")
            ax.set_ylabel("shuffle files written")
            ax.legend(loc="upper left")
        return figure
