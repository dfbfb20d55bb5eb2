"""The picture of the live view: what stands still is drawn once and kept as a background, what moves on top of it."""

import io

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg, RendererAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter, MaxNLocator
from PIL import Image

from helpers.figures.axes import LINES, MEDIAN, log_ms, next_rounds, percentile_line
from helpers.figures.looks import Look, looks
from helpers.figures.style import FAINT, style
from helpers.ruler.statistics import HEADLINE, PERCENTILES, ms
from helpers.ruler.tally import DECADES, EDGES, FLOOR, SPAN, Recent, Tally
from helpers.ruler.trace import Trace

SIZE, DPI = (10.0, 4.9), 100
LOW, HIGH = FLOOR, 10_000.0  # ms: the axes as they begin
HIGHEST = FLOOR * 10**DECADES  # and as far as they grow
LEFT, WIDE = 0.03, 0.49  # the left panel and the progress bar above it, in figure widths
HEADING, LONGEST = 17, 36  # points, where there is room, and characters of a name
MARKS = {name: PERCENTILES[name] for name in ("p50", "p99", "p99.9")}


class Picture:
    """The figure. `still()` draws what stands still, `frame()` what moves, on top of it."""

    def __init__(self) -> None:
        with style():
            self.figure = Figure(figsize=SIZE, dpi=DPI)
            self.canvas = FigureCanvasAgg(self.figure)
            self.shapes = self.figure.add_axes((LEFT, 0.135, WIDE, 0.665))
            self.times = self.figure.add_axes((0.64, 0.135, 0.345, 0.665))
            self._static: list = []
            self._background = None
            self.top = HIGH
            self._make_moving()

    def _make_moving(self) -> None:
        put = self.figure.text
        self.name = put(LEFT, 0.972, "", va="top", size=HEADING, weight="bold", animated=True)
        self.facts = put(0.985, 0.968, "", va="top", ha="right", size=14, animated=True)
        self.counts = put(0.985, 0.868, "", va="center", ha="right", size=13, animated=True)
        self.bar = Rectangle((LEFT, 0.857), 0.0, 0.022, transform=self.figure.transFigure, animated=True)
        self.figure.add_artist(self.bar)
        self.fill = self.shapes.stairs(np.zeros(len(EDGES) - 1), EDGES, fill=True, alpha=0.4, animated=True)
        self.edge = self.shapes.stairs(np.zeros(len(EDGES) - 1), EDGES, linewidth=2, animated=True)
        self.row = _Row(self.shapes, animated=True)
        dots = {"marker": "o", "markersize": 5, "markerfacecolor": "white", "animated": True}
        self.lines = {which: self.times.plot([], [], linestyle=line, **dots)[0] for which, line in LINES.items()}
        grey = {"color": "#555555", "linewidth": 2}
        keys = [Line2D([], [], label=name, linestyle=LINES[which], **grey) for name, which in HEADLINE.items()]
        self.times.legend(handles=keys, loc="upper right", ncols=2, borderaxespad=0, columnspacing=1.2)

    # -- what stands still

    def still(
        self,
        names: list[str],
        done: dict[str, Tally],
        warm_share: float = 0,
        active: str | None = None,
        traces: dict[str, Trace] | None = None,
        highest: float = HIGH,
    ) -> None:
        """Axes, finished runs, and the rows in which every run has its percentiles."""
        with style():
            for artist in self._static:
                artist.remove()
            self._static = []
            styles = dict(zip(names, looks(names), strict=True))
            self.row.brief = brief = len(names) > 3
            pitch = 0.15 if brief else 0.27
            top = 1.08 + pitch * len(names)
            self.top = self._room([highest] + [tally.most for tally in done.values()])
            log_ms(self.shapes, "x", LOW, self.top)
            self.shapes.set_ylim(0, top)
            self.shapes.set_yticks([])
            self.shapes.set_ylabel("")
            self.shapes.spines["left"].set_visible(False)
            log_ms(self.times, "y", LOW, 8 * self.top)  # above the data is room for the legend
            for number, name in enumerate(names):
                height = top - pitch * (number + (0.5 if brief else 0.75))
                if name == active:
                    self.row.height = height
                if name in done and len(done[name]):
                    self._finished(done[name], styles[name], height, name, faint=active is not None)
            for name, trace in (traces or {}).items():
                self._whole_run(trace, styles[name])
            if dividers := next_rounds(self.times, list((traces or {}).values()), tall=0.88):
                self._static += dividers
                self.times.set_xlabel("time (s); dotted: next round")
            self._static.append(self._groove(0.0, 1.0, FAINT))
            if 0 < warm_share < 1 and active is not None:
                self._static.append(self._groove(warm_share, warm_share + 0.004, "#888888"))
            self.canvas.draw()
            self._background = self.canvas.copy_from_bbox(self.figure.bbox)

    @staticmethod
    def _room(highest: list[float]) -> float:
        """Where the latency axes end: at the next power of ten, so that they seldom change."""
        return float(np.clip(10 ** np.ceil(np.log10(max(highest))), HIGH, HIGHEST))

    def _finished(self, tally: Tally, look: Look, height: float, name: str, faint: bool) -> None:
        fill = self.shapes.stairs(tally.outline(), EDGES, fill=True, color=look.colour, alpha=0.15 if faint else 0.32)
        edge = self.shapes.stairs(
            tally.outline(), EDGES, color=look.colour, linewidth=1.2 if faint else 2, alpha=0.6 if faint else 1
        )
        row = _Row(self.shapes)
        row.height, row.brief = height, self.row.brief
        row.set(name, tally, look)
        self._static += [fill, edge, *row.artists]

    def _groove(self, start: float, end: float, colour: str) -> Rectangle:
        place, transform = (LEFT + WIDE * start, 0.857), self.figure.transFigure
        return self.figure.add_artist(Rectangle(place, WIDE * (end - start), 0.022, color=colour, transform=transform))

    def time_axis(self, running: bool, seconds: float = SPAN) -> None:
        """While a run goes on: the last seconds. Afterwards: the whole of it."""
        self.times.set_xlim((-SPAN, 0) if running else (0, max(seconds, 1)))
        self.times.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10], integer=True))
        self.times.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{abs(value):,.0f}"))
        self.times.set_xlabel("seconds ago" if running else "measured time (s)")

    def _whole_run(self, trace: Trace, look: Look) -> None:
        """A finished run's p50 and p99 per second."""
        if not len(trace.samples):
            return
        for which in LINES:
            at, value = trace.windows(1.0, which)
            self._static += percentile_line(self.times, at + 0.5, value, look, which, 4, linewidth=2)

    # -- what moves

    def frame(self, moving: bool = True) -> bytes:
        """One PNG: the background, and on top of it what has changed."""
        self.canvas.restore_region(self._background)
        renderer = self.canvas.get_renderer()
        self._fit_heading(renderer)
        always = [self.name, self.facts, self.counts, self.bar]
        run = [self.fill, self.edge, *self.row.artists, *self.lines.values()]
        for artist in always + (run if moving else []):
            artist.draw(renderer)
        picture = Image.frombuffer("RGBA", self.canvas.get_width_height(), self.canvas.buffer_rgba()).convert("RGB")
        file = io.BytesIO()
        picture.save(file, "PNG", compress_level=2 if moving else 9)
        return file.getvalue()

    def head(self, name: str, phase: str) -> None:
        self.name.set_text(f"{name if len(name) <= LONGEST else name[: LONGEST - 1] + '…'} · {phase}")

    def _fit_heading(self, renderer: RendererAgg) -> None:
        """Beside it stand the percentiles, and they come first."""
        self.name.set_size(HEADING)
        wide, end = self.name.get_window_extent(renderer), self.facts.get_window_extent(renderer)
        room = end.x0 - wide.x0 - HEADING
        if end.width and wide.width > room:
            self.name.set_size(HEADING * room // wide.width)

    def progress(self, share: float, colour: str) -> None:
        self.bar.set_width(WIDE * min(1.0, share))
        self.bar.set_color(colour)

    def run(self, name: str, tally: Tally, look: Look) -> None:
        for artist in (self.fill, self.edge):
            artist.set_data(values=tally.outline())
            artist.set_color(look.colour)
        self.row.set(name, tally, look)

    def recent(self, recent: Recent, now: float, look: Look) -> None:
        at, *values = recent.ago(now)
        for line, those in zip(self.lines.values(), values, strict=True):
            line.set_data(at, those)
            line.set_color(look.colour)
            line.set_marker(look.marker)
        self.lines[MEDIAN].set_markerfacecolor(look.colour)


class _Row:
    """●──◆──| from p50 over p99 to p99.9, the name above, the values (ms) where there is room."""

    def __init__(self, ax: Axes, animated: bool = False) -> None:
        self.height, self.brief, self._ax = 1.0, False, ax
        (self._line,) = ax.plot([], [], linewidth=3, animated=animated)
        self._dots = [
            ax.plot([], [], marker, markersize=size, markeredgecolor=edge, markeredgewidth=width, animated=animated)[0]
            for marker, size, edge, width in (("o", 9, "white", 1), ("D", 9, "white", 1), ("|", 13, None, 3))
        ]
        text = {"size": 13, "va": "center", "animated": animated}
        self._words = [ax.text(1, 1, "", ha=side, **text) for side in ("right", "left")]
        self._name = ax.text(1, 1, "", size=13, weight="bold", ha="left", va="bottom", animated=animated)
        self.artists = [self._line, *self._dots, *self._words, self._name]

    def set(self, name: str, tally: Tally, look: Look) -> None:
        shown = len(tally) > 0
        for artist in self.artists:
            artist.set_visible(shown)
        if not shown:
            return
        values = [max(tally.percentile(which), FLOOR) for which in MARKS.values()]
        self._line.set_data([values[0], values[-1]], [self.height] * 2)
        self._line.set_color(look.colour)
        for dot, value in zip(self._dots, values, strict=True):
            dot.set_data([value], [self.height])
            dot.set_color(look.colour)
        for dot in self._dots[:2]:
            dot.set_markeredgecolor("white")
        self._label(name, values, look)

    def _label(self, name: str, values: list[float], look: Look) -> None:
        low, high = self._ax.get_xlim()
        inches = SIZE[0] * WIDE * np.log(high / values[-1]) / np.log(high / low)  # of room to the right
        p50, p99, p999 = (f"{mark} {ms(value)}" for mark, value in zip(MARKS, values, strict=True))
        slow = values[0] > 60
        if self.brief:
            texts = (name, "") if slow else ("", name)
        elif inches > 2:
            texts = p50, f"{p99}, {p999}"
        else:
            texts = (f"{p50}, {p99}, {p999}", "") if slow else (p50, p99)
        for words, place, text in zip(self._words, (values[0] / 1.25, values[-1] * 1.25), texts, strict=True):
            words.set_position((place, self.height))
            words.set_text(text)
        self._name.set_text("" if self.brief else name)
        self._name.set_ha("right" if slow else "left")
        self._name.set_position((values[-1] if slow else values[0], self.height + 0.055))
        self._name.set_color(look.text)


def summary(tally: Tally) -> str:
    """p50 to max in one line."""
    if not len(tally):
        return ""
    values = {name: tally.percentile(which) for name, which in MARKS.items()} | {"max": tally.most}
    return "   ".join(f"{name} {ms(value)}" for name, value in values.items()) + " ms"
