"""`make race`: the same query under two triggers, live in the terminal."""

import time
from math import isfinite

from rich.console import Console
from rich.live import Live
from rich.table import Table

from helpers import figures
from helpers.commands import report
from helpers.commands.queries import ladder
from helpers.engines.kafka import start_kafka
from helpers.engines.spark import start_spark, stop_spark
from helpers.ruler.experiment import interleave
from helpers.ruler.load import Load
from helpers.ruler.probe import Probe
from helpers.ruler.statistics import HEADLINE, Ratio, ms
from helpers.ruler.tally import Reader
from helpers.ruler.trace import Trace
from helpers.ruler.watch import Watch, seconds_done
from helpers.settings import BUILD, FETCH_WAIT_MS, INTERVAL, LINGER_MS, PACES, SLOTS, pace, shown


class Terminal(Watch):
    """Percentiles of every run so far, redrawn at every look. Without a terminal: a line per run."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._rows: dict[str, tuple[str, ...]] = {}
        self._live: Live | None = None
        self._name, self._load, self._reader = "", Load(), Reader()

    def __enter__(self) -> "Terminal":
        if self._console.is_terminal:
            self._live = Live(self._table(), console=self._console, refresh_per_second=4, transient=True)
            self._live.start()
        return self

    def __exit__(self, *_) -> None:
        if self._live:
            self._live.stop()

    def begin(self, setup_name: str, load: Load) -> None:
        self._name, self._load, self._reader = setup_name, load, Reader()

    def look(self, probe: Probe) -> None:
        status = probe.status
        self._reader.read(probe)
        so_far = self._reader.measured
        cells = [ms(so_far.percentile(which)) for which in (*HEADLINE.values(), 100)] if len(so_far) else []
        share = min(1.0, seconds_done(probe) / (self._load.warmup + self._load.seconds))
        counts = (f"{status['sent']:,}", f"{status['sent'] - status['out']:,}")
        self._show(f"{status['phase']} {share:.0%}", *counts, *cells)

    def end(self, trace: Trace | None) -> None:
        if trace is None:
            return
        cells = [ms(trace.percentile(which)) for which in (*HEADLINE.values(), 100)]
        self._show("done", f"{trace.total('sent'):,}", f"{trace.back:,}", *cells)
        if not self._live:
            self._console.print(f"{self._name}: p50 {cells[0]} ms, p99 {cells[1]} ms, max {cells[2]} ms")
        if trace.note:
            self._console.print(trace.note, style="yellow")

    def _show(self, *cells: str) -> None:
        self._rows[self._name] = cells
        if self._live:
            self._live.update(self._table())

    def _table(self) -> Table:
        table = Table(title="The race, live", title_justify="left", title_style="bold")
        for name in ("run", "now"):
            table.add_column(name, min_width=20)
        for name in ("sent", "back", *(f"{name} ms" for name in (*HEADLINE, "max"))):
            table.add_column(name, justify="right", min_width=8)
        for name, cells in self._rows.items():
            table.add_row(name, *cells)
        return table


def race(load: Load, rounds: int = 4) -> None:
    """Micro-batch as installed and at its best against Real-Time Mode, interleaved; a table, a picture, a JSON."""
    console = Console()
    began = time.monotonic()
    console.print("Starting a Kafka broker and a local Spark (about ten seconds) …")
    with start_kafka(say=console.print) as kafka:
        try:
            spark = start_spark(SLOTS)
            steps = ladder(spark, load)
            console.print(
                f"{load.rate:,} events/s, {load.seconds:g} s measured in {rounds} rounds each, after a run of each "
                "that is thrown away. One line differs: "
                f'[bold].trigger(processingTime="0 seconds")[/] or [bold].trigger(realTime="{INTERVAL}")[/].'
            )
            with Terminal(console) as watch:
                chosen = [steps[name] for name in ("installed", "async", "realtime")]
                traces = interleave(spark, kafka, chosen, rounds, watch)
        finally:
            stop_spark()
    _report(console, traces, load)
    console.print(f"Done in {time.monotonic() - began:.0f} s; broker and Spark are stopped.", style="dim")


def _report(console: Console, traces: dict[str, Trace], load: Load) -> None:
    installed, best, real = traces.values()
    headline = report.ratios("best.stateless", best, real)
    beside = report.ratios("installed.stateless", installed, real)
    table = report.latency_table(f"Kafka → Spark → Kafka at {load.rate:,} events/s", list(traces.values()))
    report.published_rows(table)
    p50, p99 = headline.values()
    console.print(
        f"\n[bold]Best against best, Real-Time Mode is {_times(p50)} faster at p50[/] ({p50.interval}), ", end=""
    )
    console.print(f"[bold]{_times(p99)} at p99[/] ({p99.interval}).")
    p50, p99 = beside.values()
    console.print(
        f"Against micro-batch as installed: {_times(p50)} and {_times(p99)}. Most of that difference is not "
        "micro-batch: on a laptop, Spark's default starts processes for every checkpoint file (lesson 01)."
    )
    console.print(table)
    console.print(
        f"Both at their best: fetch wait {FETCH_WAIT_MS} ms instead of Kafka's 500, linger {LINGER_MS} ms at producer "
        "and sink, no forks; micro-batch also with asyncProgressTrackingEnabled, which Real-Time Mode has by default. "
        f"Lost: {sum(trace.lost for trace in traces.values())}.",
        style="dim",
    )
    report.say_provenance(console, real)
    console.print(report.citation(), style="dim")
    written = report.write("race", headline | beside | report.totals(traces.values()), list(traces.values()))
    picture = BUILD / "race.png"
    picture.write_bytes(figures.as_png(figures.distributions(list(traces.values()), title="One query, two triggers")))
    console.print(f"Picture: {shown(picture)}   Run: {shown(written)}")


def _times(ratio: Ratio) -> str:
    return f"{ratio.value:,.0f} times" if isfinite(ratio.value) else "nobody knows how much"


def default_load() -> Load:
    """What the race sends at this pace."""
    at = PACES[pace()]
    return Load(seconds=at.race_seconds, warmup=at.race_warmup, linger_ms=LINGER_MS)
