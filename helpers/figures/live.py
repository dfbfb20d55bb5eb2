"""The live view: one figure that changes in place while a run goes on.

It is drawn in the notebook's kernel, which has nothing else to do then, and cheaply: what stands still is
drawn once and kept as a background, statistics are kept up to date from the new samples alone.
"""

import io
import time
from collections.abc import Callable

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter, MaxNLocator
from PIL import Image

from helpers.figures.latency import FAINT, FLOOR, LINES, Look, log_ms, looks, ms, on_log_axis, percentile_line, style
from helpers.ruler.experiment import Bar, seconds_done
from helpers.ruler.probe import Load, Probe
from helpers.ruler.trace import Trace

SIZE, DPI = (10.0, 4.9), 100
SPAN = 20  # seconds of timeline
LOW, HIGH = FLOOR, 10_000.0  # ms: the axes as they begin
FINE, COARSE = 100, 20  # bins per decade: to read percentiles from, and to draw
LEFT, WIDE = 0.03, 0.49  # the left panel and the progress bar above it, in figure widths
HEADING, LONGEST = 17, 36  # points, where there is room, and characters of a name
DECADES = 6  # from 0.1 ms to 100 s
GREY = Look("#9A9A9A")
MARKS = {"p50": 50, "p99": 99, "p99.9": 99.9}


class Tally:
    """Counts by latency. Adding samples costs the same however many there are already."""

    def __init__(self) -> None:
        self.fine = np.zeros(DECADES * FINE, int)
        self.shape = np.zeros(DECADES * COARSE, int)
        self.most = -np.inf
        self.exact: np.ndarray | None = None

    @classmethod
    def of(cls, trace: Trace) -> "Tally":
        """The counts of a finished run."""
        tally = cls()
        tally.add(trace.latency)
        tally.exact = trace.latency if len(trace.samples) else None
        return tally

    def add(self, latency: np.ndarray) -> None:
        if len(latency):
            self.fine += self._count(on_log_axis(latency), FINE)
            self.shape += self._count(on_log_axis(latency), COARSE)
            self.most = max(self.most, float(latency.max()))

    @staticmethod
    def _count(values: np.ndarray, per_decade: int) -> np.ndarray:
        place = np.clip((np.log10(values / FLOOR) * per_decade).astype(int), 0, DECADES * per_decade - 1)
        return np.bincount(place, minlength=DECADES * per_decade)

    def __add__(self, other: "Tally") -> "Tally":
        both = Tally()
        both.fine, both.shape = self.fine + other.fine, self.shape + other.shape
        both.most = max(self.most, other.most)
        return both

    def __len__(self) -> int:
        return int(self.fine.sum())

    def percentile(self, which: float) -> float:
        """Milliseconds: exact for a finished run, to the width of a bin (about 2 %) while it goes on."""
        if self.exact is not None:
            return float(np.percentile(self.exact, which))
        rank = 1 + round(which / 100 * (len(self) - 1))
        place = np.searchsorted(np.cumsum(self.fine), rank)
        return min(FLOOR * 10 ** ((place + 0.5) / FINE), max(self.most, FLOOR))

    def outline(self) -> np.ndarray:
        """The histogram's heights, its peak 1; nothing where nothing was counted."""
        return np.where(self.shape == 0, np.nan, self.shape / max(1, self.shape.max()))


EDGES = FLOOR * 10 ** (np.arange(DECADES * COARSE + 1) / COARSE)


class Timeline:
    """p50 and p99 of the results of each of the last seconds."""

    def __init__(self) -> None:
        self._parts: dict[int, list[np.ndarray]] = {}
        self._values: dict[int, tuple[float, float]] = {}

    def add(self, received: np.ndarray, latency: np.ndarray) -> None:
        second = np.floor(received).astype(int)
        for one in np.unique(second).tolist():
            self._parts.setdefault(one, []).append(latency[second == one])
            self._values[one] = tuple(np.percentile(np.concatenate(self._parts[one]), [50, 99]))
        for old in [one for one in self._parts if one < max(self._parts) - SPAN - 2]:
            del self._parts[old], self._values[old]

    def ago(self, now: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(seconds before now, p50, p99), oldest first."""
        seconds = sorted(self._values)
        values = np.array([self._values[one] for one in seconds]).reshape(-1, 2)
        return np.array(seconds) + 0.5 - now, on_log_axis(values[:, 0]), on_log_axis(values[:, 1])


class Reader:
    """What a running probe has measured so far, brought up to date from its new samples alone."""

    def __init__(self) -> None:
        self.warm, self.measured, self.timeline = Tally(), Tally(), Timeline()
        self._next = 0

    def read(self, probe: Probe) -> None:
        begun = probe.status.get("measure_from")
        fresh = probe.samples[self._next : len(probe.samples)]
        self._next += len(fresh)
        if not fresh:
            return
        new = np.concatenate(fresh)
        latency = (new[probe.clock] - new["due"]) * 1000
        counts = new["due"] >= (np.inf if begun is None else begun)
        self.warm.add(latency[~counts])
        self.measured.add(latency[counts])
        if len(new):
            self.timeline.add(new["received"], latency)


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
        (self.p50,) = self.times.plot([], [], "-", marker="o", markersize=5, animated=True)
        (self.p99,) = self.times.plot(
            [], [], linestyle=LINES[99], marker="o", markersize=5, markerfacecolor="white", animated=True
        )
        grey = {"color": "#555555", "linewidth": 2}
        keys = [Line2D([], [], label="p50", **grey), Line2D([], [], label="p99", linestyle=LINES[99], **grey)]
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
            self.shapes.grid(False, axis="x", which="minor")
            self.shapes.spines["left"].set_visible(False)
            log_ms(self.times, "y", LOW, self.top, "latency (ms, log scale)")
            self.times.grid(False, axis="y", which="minor")
            for number, name in enumerate(names):
                height = top - pitch * (number + (0.5 if brief else 0.75))
                if name == active:
                    self.row.height = height
                if name in done and len(done[name]):
                    self._finished(done[name], styles[name], height, name, faint=active is not None)
            for name, trace in (traces or {}).items():
                self._whole_timeline(trace, styles[name])
            self._static.append(self._groove(0.0, 1.0, FAINT))
            if 0 < warm_share < 1 and active is not None:
                self._static.append(self._groove(warm_share, warm_share + 0.004, "#888888"))
            self.canvas.draw()
            self._background = self.canvas.copy_from_bbox(self.figure.bbox)

    @staticmethod
    def _room(highest: list[float]) -> float:
        """Where the latency axes end: at the next power of ten, so that they seldom change."""
        return float(np.clip(10 ** np.ceil(np.log10(max(highest))), HIGH, FLOOR * 10**DECADES))

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

    def timeline_axis(self, running: bool, seconds: float = SPAN) -> None:
        """While a run goes on: the last seconds. Afterwards: the whole of it."""
        self.times.set_xlim((-SPAN, 0) if running else (0, max(seconds, 1)))
        self.times.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10], integer=True))
        self.times.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{abs(value):,.0f}"))
        self.times.set_xlabel("seconds ago" if running else "measured time (s)")

    def _whole_timeline(self, trace: Trace, look: Look) -> None:
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
        run = [self.fill, self.edge, *self.row.artists, self.p50, self.p99]
        for artist in always + (run if moving else []):
            artist.draw(renderer)
        picture = Image.frombuffer("RGBA", self.canvas.get_width_height(), self.canvas.buffer_rgba()).convert("RGB")
        file = io.BytesIO()
        picture.save(file, "PNG", compress_level=2 if moving else 9)
        return file.getvalue()

    def head(self, name: str, phase: str) -> None:
        self.name.set_text(f"{name if len(name) <= LONGEST else name[: LONGEST - 1] + '…'} · {phase}")

    def _fit_heading(self, renderer) -> None:
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

    def timeline(self, timeline: Timeline, now: float, look: Look) -> None:
        at, p50, p99 = timeline.ago(now)
        for line, values in ((self.p50, p50), (self.p99, p99)):
            line.set_data(at, values)
            line.set_color(look.colour)
            line.set_marker(look.marker)
        self.p50.set_markerfacecolor(look.colour)


class _Row:
    """●──◆──| from p50 over p99 to p99.9, the name above, the values (ms) where there is room."""

    def __init__(self, ax, animated: bool = False) -> None:
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


class LiveFigure(Bar):
    """A figure that changes in place while a run goes on; what it shows is up to `_begin`, `_look` and `_end`.

    Where there is no notebook it is a plain progress bar. If drawing fails, the measurement goes on without:
    `trouble` then holds the reason.
    """

    alt, size = "", (0.0, 0.0)  # its constant text, and inches

    def __init__(self) -> None:
        super().__init__()
        self.trouble: Exception | None = None
        self._cell: int | None = None
        self._handle = None
        self._plain = False

    def begin(self, setup_name: str, load: Load) -> None:
        self._plain = not in_notebook()
        if self._plain:
            super().begin(setup_name, load)
        else:
            self._safely(self._begin, setup_name, load)

    def look(self, probe: Probe) -> None:
        if self._plain:
            super().look(probe)
        else:
            self._safely(self._look, probe)

    def end(self, trace: Trace | None) -> None:
        if self._plain:
            super().end(trace)
        else:
            self._safely(self._end, trace)

    def _safely(self, draw: Callable, *args) -> None:
        """A picture is never worth a measurement."""
        if self.trouble is None:
            try:
                draw(*args)
            except Exception as problem:
                self.trouble = problem

    def _in_a_new_cell(self) -> bool:
        """True when this cell has no figure yet: the next one shown is its first."""
        cell = current_cell()
        if self._handle is not None and cell == self._cell:
            return False
        self._cell, self._handle = cell, None
        return True

    def _show(self, png: bytes) -> None:
        """Display once, then change that display: same text, new picture."""
        from IPython.display import display

        bundle = {"image/png": png, "text/plain": f"<figure: {self.alt}>"}
        wide, high = (round(inches * DPI) for inches in self.size)  # known before it is decoded: nothing jumps
        metadata = {"image/png": {"width": wide, "height": high, "alt": self.alt}}
        if self._handle is None:
            self._handle = display(bundle, raw=True, display_id=True, metadata=metadata)
        else:
            self._handle.update(bundle, raw=True, metadata=metadata)


class LiveView(LiveFigure):
    """The latencies of a run, or of several in turn, in one figure per cell. Finished runs stay in it."""

    alt, size = "live latency", SIZE

    def _begin(self, name: str, load: Load) -> None:
        if self._in_a_new_cell():
            self._picture, self._names = Picture(), []
            self._rounds: dict[str, list[Trace]] = {}
            self._done: dict[str, Tally] = {}
        if name not in self._names:
            self._names.append(name)
        self._name, self._load, self._reader = name, load, Reader()
        self._look_of = looks(self._names)[self._names.index(name)]
        self._before = self._earlier(name)
        self._total = load.warmup + load.seconds
        self._picture.timeline_axis(running=True)
        self._still()
        self._show(self._headed("starting", 0, 0, 0.0))

    def _earlier(self, name: str) -> Tally:
        """Earlier rounds of the same run: it grows on. One in which the machine froze is being made again."""
        rounds, tally = self._rounds.get(name, []), self._done.pop(name, Tally())
        if rounds and rounds[-1].frozen:
            rounds.pop()
            tally = Tally.of(Trace.join(rounds)) if rounds else Tally()
        return tally

    def _still(self, highest: float = HIGH) -> None:
        share = self._load.warmup / self._total
        self._picture.still(self._names, self._done, share, self._name, highest=highest)

    def _look(self, probe: Probe) -> None:
        self._reader.read(probe)
        most = max(self._reader.warm.most, self._reader.measured.most)
        if self._picture.top < min(most, FLOOR * 10**DECADES):
            self._still(most)
        status = probe.status
        sent = status.get("sent", 0)
        back = sent - status.get("out", sent)
        self._show(self._headed(status["phase"], sent, back, seconds_done(probe) / self._total))

    def _headed(self, phase: str, sent: int, back: int, share: float) -> bytes:
        """The next frame of a run that goes on."""
        picture, reader = self._picture, self._reader
        measuring = len(reader.measured) > 0
        tally, look = (reader.measured + self._before, self._look_of) if measuring else (reader.warm, GREY)
        picture.head(self._name, phase)
        picture.name.set_color(self._look_of.text)
        picture.facts.set_text(summary(tally))
        picture.counts.set_text(f"events: {sent:,} sent, {back:,} back")
        picture.progress(share, self._look_of.colour)
        picture.run(self._name if measuring else "warm-up, not counted", tally, look)
        picture.timeline(reader.timeline, time.time(), self._look_of)
        return picture.frame()

    def _end(self, trace: Trace | None) -> None:
        if trace is None:  # the run failed: what came before it stays
            if len(self._before):
                self._done[self._name] = self._before
        else:
            self._rounds.setdefault(self._name, []).append(trace)
            self._done[self._name] = Tally.of(Trace.join(self._rounds[self._name]))
        picture = self._picture
        joined = {name: Trace.join(rounds) for name, rounds in self._rounds.items()}
        longest = max([float(one.elapsed().max()) for one in joined.values() if len(one.samples)] + [1.0])
        picture.timeline_axis(running=False, seconds=longest)
        picture.still(self._names, self._done, traces=joined)
        finished = trace is not None
        picture.head(self._name, "done" if finished else "stopped")
        picture.counts.set_text("")
        picture.facts.set_text("")
        if finished:
            picture.facts.set_text(summary(self._done[self._name]))
            sent, lost = trace.total("sent"), trace.total("lost")
            late = f", {trace.late_share:.0%} sent late" if trace.note else ""
            picture.counts.set_text(f"events: {sent:,} sent{late}, {sent - lost:,} back")
            picture.progress(1.0, self._look_of.colour)
        self._show(picture.frame(moving=False))


def summary(tally: Tally) -> str:
    """p50 to max in one line."""
    if not len(tally):
        return ""
    values = {name: tally.percentile(which) for name, which in MARKS.items()} | {"max": tally.most}
    return "   ".join(f"{name} {ms(value)}" for name, value in values.items()) + " ms"


def in_notebook() -> bool:
    """True inside a Jupyter kernel."""
    shell = _shell()
    return shell is not None and hasattr(shell, "kernel")


def current_cell() -> int | None:
    """The number of the cell that runs now."""
    return getattr(_shell(), "execution_count", None)


def _shell():
    from IPython import get_ipython

    return get_ipython()
