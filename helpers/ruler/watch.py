"""What is shown while a run goes on."""

import time

from tqdm.auto import tqdm

from helpers.ruler.load import Load
from helpers.ruler.probe import Probe
from helpers.ruler.trace import Trace


class Watch:
    """What is shown while a run goes on. This one shows nothing."""

    def begin(self, setup_name: str, load: Load) -> None:
        """Called once, before anything is sent."""

    def look(self, probe: Probe) -> None:
        """Called every LOOK_SECONDS with the running probe."""

    def end(self, trace: Trace | None) -> None:
        """Called once with the finished trace, or None if the run failed."""


class Around(Watch):
    """Another watch, and something beside it."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    def begin(self, setup_name: str, load: Load) -> None:
        self._watch.begin(setup_name, load)

    def look(self, probe: Probe) -> None:
        self._watch.look(probe)

    def end(self, trace: Trace | None) -> None:
        self._watch.end(trace)


class Bar(Watch):
    """A progress bar, in a terminal or a notebook."""

    _bar: tqdm

    def begin(self, setup_name: str, load: Load) -> None:
        total = round(load.warmup + load.seconds, 1)
        self._bar = tqdm(
            total=total, desc=setup_name, unit="s", bar_format="{desc}: {percentage:3.0f}%|{bar}| {postfix}"
        )

    def look(self, probe: Probe) -> None:
        self._bar.n = min(seconds_done(probe), self._bar.total)
        self._bar.set_postfix_str(probe.status["phase"], refresh=True)

    def end(self, trace: Trace | None) -> None:
        if trace is not None:
            self._bar.n = self._bar.total
            self._bar.set_postfix_str(f"p50 {trace.p50:,.1f} ms, p99 {trace.p99:,.1f} ms", refresh=True)
        self._bar.close()
        if trace is not None and trace.note:
            tqdm.write(trace.note)


def seconds_done(probe: Probe) -> float:
    """Seconds of warm-up and measurement behind us."""
    begun = probe.status.get("measure_from")
    return 0.0 if begun is None else max(0.0, time.time() - begun + probe.load.warmup)
