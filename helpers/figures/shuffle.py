"""The shuffle's files on disk, drawn while a query writes them."""

from matplotlib.figure import Figure
from pyspark.sql import SparkSession

from helpers.evidence.shuffle_files import FileCounter
from helpers.figures.display import as_png
from helpers.figures.live import LiveFigure
from helpers.figures.looks import looks
from helpers.figures.style import DPI, WIDTH, new_figure, style
from helpers.ruler.load import Load
from helpers.ruler.probe import Probe
from helpers.ruler.trace import Trace


class LiveFiles(LiveFigure):
    """How many shuffle files a run has written so far, while it goes on. Several runs share one figure."""

    alt, size = "live shuffle files", (WIDTH, 3.4)

    def __init__(self, spark: SparkSession) -> None:
        self._counter = FileCounter(spark)
        super().__init__(self._counter)

    @property
    def written(self) -> dict[str, dict[str, int]]:
        """By run: the files that it wrote with their bytes, whether still there or not."""
        return self._counter.written

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
            runs = self._counter.counts
            for (name, points), look in zip(runs.items(), looks(list(runs)), strict=True):
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
