"""What a command leaves behind: a table for people, a JSON file for everything else."""

import json
import os
from collections.abc import Iterable
from math import isfinite
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from helpers.ruler.statistics import HEADLINE, PERCENTILES, Ratio, ms
from helpers.ruler.trace import Trace, ratio
from helpers.settings import BUILD, ROOT

PUBLISHED = ROOT / "data" / "published.json"
COLUMNS = [name for name in PERCENTILES if name != "p90"]  # what 80 columns have room for


def ratios(family: str, slow: Trace, fast: Trace, over: str = "microbatch_over_realtime") -> dict[str, Ratio]:
    """`<family>.p50.microbatch_over_realtime` and the same for p99."""
    return {f"{family}.{name}.{over}": ratio(slow, fast, which) for name, which in HEADLINE.items()}


def totals(traces: Iterable[Trace]) -> dict[str, float]:
    """What went wrong in all runs together: 0 and 0, or a claim of speed is worth nothing."""
    traces = list(traces)
    return {"lost": sum(trace.lost for trace in traces), "duplicated": sum(trace.duplicated for trace in traces)}


def latency_table(title: str, traces: list[Trace]) -> Table:
    """Narrow enough for a terminal of 80 columns."""
    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("latency in ms")
    for name in (*COLUMNS, "events", "lost", "dup."):
        table.add_column(name, justify="right")
    for trace in traces:
        summary = trace.summary()
        counts = (len(trace.samples), trace.lost, trace.duplicated)
        table.add_row(trace.label, *(ms(summary[name]) for name in COLUMNS), *(f"{n:,}" for n in counts))
    return table


def published_rows(table: Table) -> None:
    """The benchmark article's figures beside ours, marked as theirs."""
    article = json.loads(PUBLISHED.read_text())["benchmark_article"]
    table.add_section()
    for mode in ("micro-batch", "real-time"):
        cells = [str(article[mode].get(name, "")) for name in COLUMNS]
        table.add_row(f"article: {mode}", *cells, "≈120,000", style="dim")


def citation() -> str:
    article = json.loads(PUBLISHED.read_text())["benchmark_article"]
    return f"Published figures: {article['source']} ({article['what']})."


ENDS = {
    "appended": "the broker appended its result (half a millisecond added, because the broker counts whole ones)",
    "received": "its result was read (an external broker has a clock of its own)",
}


def say_provenance(console: Console, trace: Trace) -> None:
    """What the figures were measured on, and what they are."""
    console.print(about(trace), style="dim")


def about(trace: Trace) -> str:
    meta = trace.meta
    return (
        f"Measured {meta['date'][:10]} at commit {meta['commit']} on {meta['machine']}, Java {meta['java']} "
        f"({meta['collector']}, heap {meta['heap_mib']:,} MiB), Python {meta['python']}, "
        f"pyspark {meta['versions']['pyspark']} (checkpoints by {meta['checkpoint_manager']}), "
        f"Kafka {meta['backend']}, {meta['slots']} slots. "
        f"Latency: from when an event was due to when {ENDS[trace.clock]}."
    )


def write(name: str, figures: dict[str, float | Ratio], traces: list[Trace]) -> Path:
    """`build/<name>.json`: one flat map of figures, their intervals, and every run with its raw latencies."""
    plain = {key: figure.value if isinstance(figure, Ratio) else figure for key, figure in figures.items()}
    plain = {key: value for key, value in plain.items() if isfinite(value)}  # no ratio: the run was not steady
    ratios = {key: figure for key, figure in figures.items() if isinstance(figure, Ratio)}
    intervals = {key: [figure.low, figure.high] for key, figure in ratios.items() if isfinite(figure.low)}
    runs = [
        {"name": trace.name, "ms": trace.summary(), "latency_ms": trace.latency.round(1).tolist(), **trace.meta}
        for trace in traces
    ]
    BUILD.mkdir(exist_ok=True)
    path = BUILD / f"{name}.json"
    whole = path.with_suffix(f".{os.getpid()}")  # two races at once must not write into each other's file
    whole.write_text(json.dumps({"figures": plain, "intervals": intervals, "runs": runs}, indent=1))
    return whole.replace(path)
