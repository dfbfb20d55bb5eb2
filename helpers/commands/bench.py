"""`make bench`: every speed claim of the series, measured in one go and given as ratios.

The benchmark article's protocol: 2,000 events/s, 128-byte payload, 60 s measured, Real-Time interval 5 minutes. Each
query is run once and thrown away, then measured in four rounds in A/B/B/A order: the JVMs of Spark and of the broker
need their warm-up on two cores. Before all that, micro-batch runs until it gets no faster: it needs minutes.
"""

import time
from dataclasses import replace

import numpy as np
from pyspark.sql import SparkSession
from rich.console import Console

from helpers.commands import report
from helpers.commands.knee import Sweep, knee
from helpers.commands.observer import live_view_on_and_off
from helpers.commands.queries import ASYNC, LINGER, MICRO, REAL, REAL_TIME, TUNED, count_per_key, forward, ladder
from helpers.engines.kafka import Kafka, start_kafka
from helpers.engines.spark import start_spark, stop_spark
from helpers.faults.slow_store import slow_store
from helpers.ruler.experiment import Query, Setup, interleave, measure_ruler, settle, there_and_back
from helpers.ruler.load import Load
from helpers.ruler.statistics import HEADLINE
from helpers.ruler.trace import Trace, ratio
from helpers.settings import FETCH_WAIT_MS, INTERVAL, LINGER_MS, SLOTS, shown

PROTOCOL = Load(rate=2_000, seconds=60, warmup=16, payload=128, linger_ms=LINGER_MS)
FLUSH_MS = 5  # the streaming shuffle's flush timer; Spark's default is 50
STORE_MS = 100  # what a request to the slow store takes
LEAST_INTERVAL = 5  # seconds, says Spark
STATE = {  # what Real-Time Mode brings for its state, given to micro-batch as well
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": True,
    "spark.sql.streaming.stateStore.checkpointFormatVersion": 2,
    "spark.sql.adaptive.enabled": False,
}
GROUPBY, SAME_STATE = "micro-batch, groupBy", "micro-batch, groupBy, same state"
REAL_GROUPBY = "real-time, groupBy"
STORED, STORED_BEST = "micro-batch, slow store", "micro-batch, slow store, async"
REAL_STORED = "real-time, slow store"


def bench(load: Load, rounds: int) -> None:
    console = Console()
    startup: dict = {}
    with start_kafka(say=console.print) as kafka:
        startup["startup.kafka_seconds"] = kafka.seconds_to_start
        ruler = _ruler(kafka, load, rounds)
        try:
            began = time.monotonic()
            spark = start_spark(SLOTS, **{"spark.shuffle.streaming.networkBufferMaxWaitTimeMs": FLUSH_MS})
            startup["startup.spark_seconds"] = time.monotonic() - began
            steps = ladder(spark, load)
            lap = replace(steps["async"].load, seconds=load.seconds / 4, warmup=min(load.warmup, 4))
            laps = settle(spark, kafka, replace(steps["async"], load=lap), max(1, round(load.seconds / 5)))
            console.print(f"Warm-up of micro-batch, median of each lap: {', '.join(f'{ms:.0f}' for ms in laps)} ms")
            stateless = interleave(spark, kafka, [*steps.values(), _no_linger(spark, load)], rounds)
            groupby = interleave(spark, kafka, _groupby(spark, load), rounds)
            boundary = interleave(spark, kafka, [_with_boundaries(spark, load)], 1)
            stored = interleave(spark, kafka, _slow_store(spark, load), rounds)
            bent, sweep, knees = knee(spark, kafka, load)
        finally:
            stop_spark()
    # in lesson 00's own conditions
    observed = live_view_on_and_off(replace(load, rate=1_000, seconds=load.seconds / 2 / rounds), rounds)
    runs = {**stateless, **groupby, **boundary, **stored, **observed} | _by_name(sweep)
    real = stateless[REAL_TIME]
    climbed = {name: stateless[setup.name] for name, setup in steps.items() if setup.name != REAL_TIME}
    figures = {
        **{key: value for name, trace in climbed.items() for key, value in _over_realtime(name, trace, real).items()},
        **_best("best.stateless", [climbed["nofork"], climbed["async"]], real),
        **_best("best.groupby", [groupby[GROUPBY], groupby[SAME_STATE]], groupby[REAL_GROUPBY]),
        **report.ratios("same_state.groupby", groupby[SAME_STATE], groupby[REAL_GROUPBY]),
        **report.ratios("slow_store.stateless", stored[STORED], stored[REAL_STORED]),
        **_best("best.slow_store.stateless", [stored[STORED], stored[STORED_BEST]], stored[REAL_STORED]),
        **_cost(climbed["async"], real),
        **bent,
        "ruler.p50.kafka_python_over_confluent": ratio(ruler["kafka-python"], ruler["confluent-kafka"], 50),
        "ruler.p99.kafka_python_over_confluent": ratio(ruler["kafka-python"], ruler["confluent-kafka"], 99),
        "ruler.producer_core_share": ruler["confluent-kafka"].rounds[0]["producer_core_share"],
        "liveview.p50.on_over_off": ratio(observed["live view on"], observed["live view off"], 50),
        "liveview.p99.on_over_off": ratio(observed["live view on"], observed["live view off"], 99),
        **report.totals(runs.values()),
        **startup,
        "warmup.laps": len(laps),
        "warmup.first_over_last": laps[0] / laps[-1],
        "drift.microbatch.last_over_first_round": _drift(climbed["async"]),
        "drift.realtime.last_over_first_round": _drift(real),
    }
    families = {
        "The ruler alone: sending and reading, no Spark": ruler,
        "Stateless: forward, step by step": stateless,
        "groupBy: count per key": groupby | boundary,
        f"Stateless, checkpoints on a store of {STORE_MS} ms a request": stored,
        "The observer effect (real-time, 1,000 events/s)": observed,
    }
    _show(console, figures, families, load, rounds)
    console.print(knees)
    written = report.write("bench", figures, [*ruler.values(), *runs.values()])
    console.print(f"Run: {shown(written)}")


def knee_alone(load: Load) -> None:
    """Only the knee: a quarter of an hour instead of a whole one."""
    console = Console()
    with start_kafka(say=console.print) as kafka:
        try:
            figures, sweep, table = knee(start_spark(SLOTS), kafka, load)
        finally:
            stop_spark()
    runs = _by_name(sweep)
    _say(console, figures)
    console.print(table)
    report.say_provenance(console, next(iter(runs.values())))
    written = report.write("knee", figures | report.totals(runs.values()), list(runs.values()))
    console.print(f"Run: {shown(written)}")


def _by_name(sweep: Sweep) -> dict[str, Trace]:
    return {trace.name: trace for runs in sweep.values() for trace in runs.values()}


def _over_realtime(step: str, trace: Trace, real: Trace) -> dict:
    return report.ratios(f"ladder.{step}", trace, real, over="over_realtime")


def _best(family: str, tuned: list[Trace], real: Trace) -> dict:
    """Against whichever is the fastest at that percentile: nobody runs the slower one."""
    fastest = {name: min(tuned, key=lambda trace: trace.percentile(which)) for name, which in HEADLINE.items()}
    return {
        f"{family}.{name}.microbatch_over_realtime": ratio(trace, real, HEADLINE[name])
        for name, trace in fastest.items()
    }


def _cost(micro: Trace, real: Trace) -> dict[str, float]:
    """Processor time of Spark's process, over that of Real-Time Mode; nothing if a run was too short to tell."""
    used = [[lap["cost"].get("cores", 0.0) for lap in trace.rounds] for trace in (micro, real)]
    return {"cost.microbatch_over_realtime_cores": sum(used[0]) / sum(used[1])} if all(map(all, used)) else {}


def _drift(trace: Trace) -> float:
    """The median of the last round over that of the first: 1 where all was warm."""
    rounds = trace.by_second()
    first, last = (float(np.median(np.concatenate(rounds[which]))) for which in (0, -1))
    return last / first


def _ruler(kafka: Kafka, load: Load, rounds: int) -> dict[str, Trace]:
    """The probe alone, with each client, at the same rate: what the instrument itself adds."""
    traces: dict[str, list[Trace]] = {"confluent-kafka": [], "kafka-python": []}
    part = replace(load, seconds=load.seconds / 2 / rounds, warmup=min(load.warmup, 5), linger_ms=0)
    measure_ruler(kafka, part, "warm-up of the broker, not counted")
    for client in there_and_back(list(traces), rounds):
        traces[client].append(measure_ruler(kafka, replace(part, client=client), client))
    return {client: Trace.join(parts) for client, parts in traces.items()}


def _no_linger(spark: SparkSession, load: Load) -> Setup:
    """Real-Time Mode with a request per event, as in the article: a lower median, and more work for two cores."""
    return Setup("real-time, no linger", forward(spark, TUNED), REAL, replace(load, linger_ms=0))


def _groupby(spark: SparkSession, load: Load) -> list[Setup]:
    query = count_per_key(spark, TUNED, LINGER)
    return [
        Setup(GROUPBY, query, MICRO, load),
        Setup(SAME_STATE, query, MICRO, load, conf=STATE),
        Setup(REAL_GROUPBY, query, REAL, load),
    ]


def _with_boundaries(spark: SparkSession, load: Load) -> Setup:
    """The row that contains boundaries, four of them or so: what a checkpoint adds to the tail."""
    interval = max(LEAST_INTERVAL, round(load.seconds / 4))
    load = replace(load, seconds=max(load.seconds, 2.5 * interval))
    query = count_per_key(spark, TUNED, LINGER)
    return Setup(f"real-time, groupBy, {interval} s", query, {"realTime": f"{interval} seconds"}, load)


def _slow_store(spark: SparkSession, load: Load) -> list[Setup]:
    def stored(query: Query) -> Query:
        return lambda route: query(replace(route, checkpoint=slow_store(spark, route.checkpoint, STORE_MS)))

    plain, asynchronous = (stored(forward(spark, TUNED, LINGER | more)) for more in ({}, ASYNC))
    half = replace(load, seconds=load.seconds / 2)
    return [
        Setup(STORED, plain, MICRO, half),
        Setup(STORED_BEST, asynchronous, MICRO, half),
        Setup(REAL_STORED, plain, REAL, half),
    ]


def _say(console: Console, figures: dict) -> None:
    console.print("\n[bold]Figures[/]")
    for name, value in figures.items():
        console.print(f"  {name:<48} {value if not isinstance(value, float) else f'{value:,.2f}'}", highlight=False)


def _show(console: Console, figures: dict, families: dict[str, dict[str, Trace]], load: Load, rounds: int) -> None:
    stateless = next(traces for traces in families.values() if REAL_TIME in traces)
    groupby = next(traces for traces in families.values() if REAL_GROUPBY in traces)
    _say(console, figures)
    for title, traces in families.items():
        table = report.latency_table(title, list(traces.values()))
        if traces is stateless:
            report.published_rows(table)
        console.print(table)
    rows = {name: groupby[name].total("rows") for name in (GROUPBY, REAL_GROUPBY)}
    console.print(
        f"{load.rate:,} events/s, {load.payload}-byte payload. Each query was run once, thrown away, then measured in "
        f"{rounds} rounds in A/B/B/A order, {load.seconds / rounds:g} s each after {load.warmup / 2:g} s of warm-up. "
        "The steps keep what the ones before them set: fetch wait "
        f"{FETCH_WAIT_MS} ms instead of Kafka's 500, linger {LINGER_MS} ms at producer and sink instead of 0, "
        "checkpoint files written without starting processes, asyncProgressTrackingEnabled (at its best). "
        "Everything below the steps has the first three. "
        f"Real-Time interval {INTERVAL} unless the name says another, shuffle flush timer {FLUSH_MS} ms. "
        "“Same state”: micro-batch with RocksDB, its changelog, format 2 and AQE off, as Real-Time Mode has them. The "
        f"groupBy wrote {rows[GROUPBY]:,} rows under micro-batch (one per key and batch) and {rows[REAL_GROUPBY]:,} "
        "under Real-Time Mode; every event is timed by the first row that counts it.",
        style="dim",
    )
    report.say_provenance(console, stateless[REAL_TIME])
    console.print(report.citation(), style="dim")
