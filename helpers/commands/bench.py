"""`make bench`: every speed claim of the series, measured in one go and given as ratios.

The benchmark article's protocol: 2,000 events/s, 128-byte payload, no linger, 60 s measured, Real-Time
interval 5 minutes. Rounds are interleaved. The warm-up is longer than the article's 15 s, because here it
happens in every round, and the JVMs of Spark and of the broker need it on two cores.
"""

import time
from dataclasses import replace

from rich.console import Console

from helpers.commands import report
from helpers.commands.observer import live_view_on_and_off
from helpers.commands.queries import MICRO, REAL, TUNED, count_per_key, forward
from helpers.engines.kafka import Kafka, start_kafka
from helpers.engines.spark import start_spark, stop_spark
from helpers.ruler.experiment import Setup, interleave, measure_ruler
from helpers.ruler.load import Load
from helpers.ruler.trace import Trace, ratio
from helpers.settings import FETCH_WAIT_MS, INTERVAL, LINGER_MS, SLOTS, shown

PROTOCOL = Load(rate=2_000, seconds=60, warmup=25, payload=128, linger_ms=0)
FLUSH_MS = 5  # the streaming shuffle's flush timer; Spark's default is 50


def bench(load: Load, rounds: int) -> None:
    console = Console()
    figures: dict = {}
    with start_kafka(say=console.print) as kafka:
        figures["startup.kafka_seconds"] = kafka.seconds_to_start
        ruler = _ruler(kafka, load, rounds)
        try:
            began = time.monotonic()
            spark = start_spark(SLOTS, **{"spark.shuffle.streaming.networkBufferMaxWaitTimeMs": FLUSH_MS})
            figures["startup.spark_seconds"] = time.monotonic() - began
            stateless = interleave(spark, kafka, _stateless(spark, load), rounds)
            groupby = interleave(spark, kafka, _groupby(spark, load), rounds)
        finally:
            stop_spark()
    # in lesson 00's own conditions
    observed = live_view_on_and_off(
        replace(load, rate=1_000, linger_ms=LINGER_MS, seconds=load.seconds / 2 / rounds), rounds
    )
    runs = {**stateless, **groupby, **observed}
    figures = {
        **report.ratios("stateless", stateless["micro-batch"], stateless["real-time"]),
        **report.ratios("stateless_linger_1", stateless["micro-batch, linger 1"], stateless["real-time, linger 1"]),
        **report.ratios("stateless_async", stateless["micro-batch, async"], stateless["real-time"]),
        **report.ratios("groupby", groupby["micro-batch, groupBy"], groupby["real-time, groupBy"]),
        "ruler.p99.kafka_python_over_confluent": ratio(ruler["kafka-python"], ruler["confluent-kafka"], 99),
        "ruler.producer_core_share": ruler["confluent-kafka"].rounds[0]["producer_core_share"],
        "liveview.p50.on_over_off": ratio(observed["live view on"], observed["live view off"], 50),
        "liveview.p99.on_over_off": ratio(observed["live view on"], observed["live view off"], 99),
        **report.totals(runs.values()),
        **figures,
    }
    families = {
        "The ruler alone, no Spark": ruler,
        "Stateless: forward": stateless,
        "groupBy: count per key": groupby,
        "The observer effect (real-time, 1,000 events/s)": observed,
    }
    _show(console, figures, families, load, rounds)
    written = report.write("bench", figures, [*ruler.values(), *runs.values()])
    console.print(f"Run: {shown(written)}")


def _ruler(kafka: Kafka, load: Load, rounds: int) -> dict[str, Trace]:
    """The probe alone, with each client, at the same rate: what the instrument itself adds."""
    traces: dict[str, list[Trace]] = {"confluent-kafka": [], "kafka-python": []}
    part = replace(load, seconds=load.seconds / 2 / rounds, warmup=min(load.warmup, 5), linger_ms=0)
    measure_ruler(kafka, part, "warm-up of the broker, not counted")
    for _ in range(rounds):
        for client, parts in traces.items():
            parts.append(measure_ruler(kafka, replace(part, client=client), client))
    return {client: Trace.join(parts) for client, parts in traces.items()}


def _stateless(spark, load: Load) -> list[Setup]:
    """Both triggers at both lingers, and micro-batch with its two log writes taken off the critical path."""
    setups = []
    for linger, suffix in ((load.linger_ms, ""), (LINGER_MS, f", linger {LINGER_MS}")):
        query = forward(spark, TUNED, {"kafka.linger.ms": f"{linger:g}"})
        for name, trigger in (("micro-batch", MICRO), ("real-time", REAL)):
            setups.append(Setup(name + suffix, query, trigger, replace(load, linger_ms=linger)))
    asynchronous = forward(
        spark, TUNED, {"kafka.linger.ms": f"{load.linger_ms:g}", "asyncProgressTrackingEnabled": True}
    )
    return [*setups, Setup("micro-batch, async", asynchronous, MICRO, load)]


def _groupby(spark, load: Load) -> list[Setup]:
    query = count_per_key(spark, TUNED, {"kafka.linger.ms": f"{LINGER_MS}"})
    load = replace(load, linger_ms=LINGER_MS)
    modes = (("micro-batch", MICRO), ("real-time", REAL))
    return [Setup(f"{name}, groupBy", query, trigger, load) for name, trigger in modes]


def _show(console: Console, figures: dict, families: dict[str, dict[str, Trace]], load: Load, rounds: int) -> None:
    stateless, groupby = families["Stateless: forward"], families["groupBy: count per key"]
    console.print("\n[bold]Figures[/]")
    for name, value in figures.items():
        console.print(f"  {name:<48} {value if not isinstance(value, float) else f'{value:,.2f}'}", highlight=False)
    for title, traces in families.items():
        table = report.latency_table(title, list(traces.values()))
        if traces is stateless:
            report.published_rows(table)
        console.print(table)
    rows = {name: groupby[f"{name}, groupBy"].total("rows") for name in ("micro-batch", "real-time")}
    console.print(
        f"{load.rate:,} events/s, {load.payload}-byte payload, {load.warmup:g} s of warm-up, then "
        f"{load.seconds / rounds:g} s measured, in each of {rounds} interleaved rounds. Fetch wait "
        f"{FETCH_WAIT_MS} ms. Linger {load.linger_ms:g} ms at producer and sink; {LINGER_MS} ms where the name says so "
        f"and for groupBy. Real-Time interval {INTERVAL}, shuffle flush timer {FLUSH_MS} ms. "
        "async: micro-batch with asyncProgressTrackingEnabled. The groupBy wrote "
        f"{rows['micro-batch']:,} rows under micro-batch (one per key and batch) and {rows['real-time']:,} under "
        "Real-Time Mode; every event is timed by the first row that counts it.",
        style="dim",
    )
    report.say_provenance(console, stateless["real-time"])
    console.print(report.citation(), style="dim")
