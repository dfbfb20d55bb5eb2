"""Figures that change in place while a run goes on.

They are drawn in the notebook's kernel, which has nothing else to do then.
"""

import time
from collections.abc import Callable

from helpers.errors import first_line
from helpers.figures.display import bundle, current_cell, in_notebook
from helpers.figures.looks import Look, looks
from helpers.figures.picture import DPI, HIGH, HIGHEST, SIZE, Picture, summary
from helpers.ruler.load import Load
from helpers.ruler.probe import Probe
from helpers.ruler.tally import Reader, Tally
from helpers.ruler.trace import Trace
from helpers.ruler.watch import Bar, Watch, seconds_done

GREY = Look("#9A9A9A")


class LiveFigure(Bar):
    """A figure that changes in place while a run goes on; what it shows is up to `_begin`, `_look` and `_end`.

    Where there is no notebook it is a plain progress bar. Either way `evidence` sees the whole run, and neither
    trouble with it nor with drawing stops the measurement: it is said once, when the run is over.
    """

    alt, size = "", (0.0, 0.0)  # its constant text, and inches

    def __init__(self, evidence: Watch | None = None) -> None:
        super().__init__()
        self.evidence = evidence or Watch()
        self.trouble: Exception | None = None  # with drawing: then it goes on without
        self.missed: Exception | None = None  # of the evidence: the next look tries again
        self._said = False
        self._cell: int | None = None
        self._handle = None
        self._plain = False

    def begin(self, setup_name: str, load: Load) -> None:
        self._plain = not in_notebook()
        self._collect(self.evidence.begin, setup_name, load)
        if self._plain:
            super().begin(setup_name, load)
        else:
            self._safely(self._begin, setup_name, load)

    def look(self, probe: Probe) -> None:
        self._collect(self.evidence.look, probe)
        if self._plain:
            super().look(probe)
        else:
            self._safely(self._look, probe)

    def end(self, trace: Trace | None) -> None:
        self._collect(self.evidence.end, trace)
        if self._plain:
            super().end(trace)
        else:
            self._safely(self._end, trace)
        self._say_trouble()

    def _begin(self, name: str, load: Load) -> None:
        raise NotImplementedError

    def _look(self, probe: Probe) -> None:
        raise NotImplementedError

    def _end(self, trace: Trace | None) -> None:
        raise NotImplementedError

    def _collect(self, step: Callable, *args: object) -> None:
        try:
            step(*args)
        except Exception as problem:
            self.missed = problem

    def _safely(self, draw: Callable, *args: object) -> None:
        """A picture is never worth a measurement."""
        if self.trouble is None:
            try:
                draw(*args)
            except Exception as problem:
                self.trouble = problem

    def _say_trouble(self) -> None:
        if self._said:
            return
        if self.trouble is not None:
            print(f"The figure could not be drawn to the end ({first_line(self.trouble)}); the run was measured.")
        if self.missed is not None:
            print(f"Not everything beside the run could be noted ({first_line(self.missed)}); the run was measured.")
        self._said = self.trouble is not None or self.missed is not None

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

        wide, high = (round(inches * DPI) for inches in self.size)  # known before it is decoded: nothing jumps
        picture, about = bundle(png, self.alt, width=wide, height=high)
        if self._handle is None:
            self._handle = display(picture, raw=True, display_id=True, metadata=about)
        else:
            self._handle.update(picture, raw=True, metadata=about)


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
        self._picture.time_axis(running=True)
        self._still()
        self._show(self._headed("starting", 0, 0, 0.0))

    def _earlier(self, name: str) -> Tally:
        """Earlier rounds of the same run: it grows on. One in which the machine froze is being made again."""
        rounds, tally = self._rounds.get(name, []), self._done.pop(name, Tally())
        if rounds and rounds[-1].spoilt:
            rounds.pop()
            tally = Tally.of(Trace.join(rounds)) if rounds else Tally()
        return tally

    def _still(self, highest: float = HIGH) -> None:
        share = self._load.warmup / self._total
        self._picture.still(self._names, self._done, share, self._name, highest=highest)

    def _look(self, probe: Probe) -> None:
        self._reader.read(probe)
        most = max(self._reader.warm.most, self._reader.measured.most)
        if self._picture.top < min(most, HIGHEST):
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
        picture.recent(reader.recent, time.time(), self._look_of)
        return picture.frame()

    def _end(self, trace: Trace | None) -> None:
        self._keep(trace)
        picture = self._picture
        joined = {name: Trace.join(rounds) for name, rounds in self._rounds.items()}
        longest = max([float(trace.elapsed().max()) for trace in joined.values() if len(trace.samples)] + [1.0])
        picture.time_axis(running=False, seconds=longest)
        picture.still(self._names, self._done, traces=joined)
        picture.head(self._name, "stopped" if trace is None else "done")
        picture.counts.set_text("")
        picture.facts.set_text("")
        if trace is not None:
            picture.facts.set_text(summary(self._done[self._name]))
            late = "" if trace.schedule_kept else f", {trace.late_share:.0%} sent late"
            picture.counts.set_text(f"events: {trace.total('sent'):,} sent{late}, {trace.back:,} back")
            picture.progress(1.0, self._look_of.colour)
        self._show(picture.frame(moving=False))

    def _keep(self, trace: Trace | None) -> None:
        """What stays in the figure: this run too, or if it failed what came before it."""
        if trace is not None:
            self._rounds.setdefault(self._name, []).append(trace)
            self._done[self._name] = Tally.of(Trace.join(self._rounds[self._name]))
        elif len(self._before):
            self._done[self._name] = self._before
