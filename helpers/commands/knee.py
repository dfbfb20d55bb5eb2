"""The knee, as figures of `make bench`: how much load each mode can take, what happens beyond, what an event costs.

Lesson 07's query: a task that hashes for 0.3 ms an event, calibrated to the machine, so that one task is the limit in
both modes and the probe is not. First, what can it do at all? Then each mode runs until it gets no faster: a cold JVM
would bend its curve. Then loads from half of the capacity to well beyond and back again, each run from fresh topics.
"""

from dataclasses import replace

import numpy as np
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from rich.table import Table

from helpers.commands.queries import ASYNC, EVENT, LINGER, MICRO, REAL, TUNED, forward, kafka_to_kafka
from helpers.engines.kafka import Kafka
from helpers.evidence.calibrate import rounds_for
from helpers.ruler.bulk import Drained
from helpers.ruler.experiment import Query, Setup, how_fast, measure, settle, there_and_back
from helpers.ruler.load import Load
from helpers.ruler.statistics import ms
from helpers.ruler.trace import Trace

WORK_MS = 0.3
POLLS = {"kafka.max.poll.records": "10000"}  # at Kafka's 500, micro-batch did a quarter less of a backlog
SHARES = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.4)  # of what one task can do
LAPS = 4  # drains of each mode that count, and before them as many that do not: the JVM gets faster all the time
MOST_LAPS = 9  # of each mode, until it gets no faster
A_GLANCE = 10  # seconds: who measures for less wants to see that it works
MODES = ("microbatch", "realtime")
NAMES = dict(zip(MODES, ("micro-batch", "real-time"), strict=True))
Sweep = dict[str, dict[float, Trace]]  # by mode, by share


def knee(spark: SparkSession, kafka: Kafka, load: Load) -> tuple[dict, Sweep, Table]:
    """The figures, the runs by mode and share of the capacity, and a table of them."""
    glance = load.seconds < A_GLANCE
    events, laps, shares = (10_000, 1, SHARES[::7]) if glance else (200_000, LAPS, SHARES)
    plain = _drains(spark, kafka, {mode: forward(spark, TUNED | POLLS, _sink(mode)) for mode in MODES}, events, laps)
    busy = _busy(spark)
    done = _drains(spark, kafka, busy, events // 10, laps)
    capacity = _median(done["realtime"], "events_per_second")
    round_load = replace(load, seconds=load.seconds / 6, warmup=min(load.warmup, 4))
    offered = {share: replace(round_load, rate=max(1, round(share * capacity))) for share in shares}
    _settle(spark, kafka, busy, offered[shares[0]], 1 if glance else MOST_LAPS)
    sweep = _sweep(spark, kafka, busy, offered)
    return _figures(plain, sweep, capacity), sweep, _table(sweep, capacity)


def _trigger(mode: str) -> dict[str, str]:
    return MICRO if mode == "microbatch" else REAL


def _sink(mode: str) -> dict:
    return LINGER | (ASYNC if mode == "microbatch" else {})


def _busy(spark: SparkSession) -> dict[str, Query]:
    def work(rounds: int):
        return F.expr(f"aggregate(sequence(1, {rounds}), last, (text, i) -> sha2(text, 256))")

    rounds = rounds_for(spark, work, WORK_MS)

    def transform(events: DataFrame) -> DataFrame:
        event = F.from_json(F.col("value").cast("string"), EVENT)
        result = F.struct(F.col("last").alias("event_id"), work(rounds).alias("hash"))
        return events.select("key", event["event_id"].alias("last")).select("key", F.to_json(result).alias("value"))

    return {mode: kafka_to_kafka(spark, transform, TUNED, _sink(mode)) for mode in MODES}


def _drains(
    spark: SparkSession, kafka: Kafka, queries: dict[str, Query], events: int, laps: int
) -> dict[str, list[Drained]]:
    """Each mode works off so many events, there and back; the first half of the laps does not count."""
    found: dict[str, list[Drained]] = {mode: [] for mode in MODES}
    for mode in there_and_back(MODES, 2 * laps):
        found[mode].append(how_fast(spark, kafka, Setup(NAMES[mode], queries[mode], _trigger(mode), fill=events)))
    return {mode: drains[laps:] for mode, drains in found.items()}


def _settle(spark: SparkSession, kafka: Kafka, queries: dict[str, Query], load: Load, laps: int) -> None:
    """Many small batches, thrown away: a backlog takes a few large ones, and leaves Spark's planning cold."""
    for mode in MODES:
        settle(spark, kafka, Setup(NAMES[mode], queries[mode], _trigger(mode), load), laps)


def _sweep(spark: SparkSession, kafka: Kafka, queries: dict[str, Query], offered: dict[float, Load]) -> Sweep:
    """Up and down again, the modes in turn: each share twice in each mode, once before the other mode, once after."""
    parts: dict[str, dict[float, list[Trace]]] = {mode: {share: [] for share in offered} for mode in MODES}
    for number, share in enumerate(there_and_back(list(offered), 2)):
        for mode in MODES[:: 1 if number % 2 == 0 else -1]:
            setup = Setup(f"{NAMES[mode]}, load {share:.0%}", queries[mode], _trigger(mode), offered[share])
            parts[mode][share].append(measure(spark, kafka, setup))
    return {mode: {share: Trace.join(rounds) for share, rounds in runs.items()} for mode, runs in parts.items()}


def _figures(plain: dict[str, list[Drained]], sweep: Sweep, capacity: float) -> dict:
    steady = {mode: knee_of(runs) for mode, runs in sweep.items()}
    figures = {f"knee.{mode}_events_per_second": steady[mode] * capacity for mode in MODES}
    figures |= {f"knee.{mode}_recovery_seconds": sweep[mode][max(sweep[mode])].catch_up for mode in MODES}
    figures |= {f"throughput.{mode}_events_per_second": _median(plain[mode], "events_per_second") for mode in MODES}
    common = min(steady.values())
    costs = [sweep[mode][common].cpu_per_million for mode in MODES] if common else []
    if costs and np.isfinite(costs).all():  # at the highest load that both keep up with
        micro, real = costs
        figures |= {"cost.microbatch_over_realtime_cpu_per_event": micro / real}
        figures |= {"cost.microbatch_cpu_seconds_per_million": micro, "cost.realtime_cpu_seconds_per_million": real}
    return figures


def knee_of(runs: dict[float, Trace]) -> float:
    """The largest share before the first at which the backlog grew; 0 if it grew from the start."""
    kept = 0.0
    for share, trace in sorted(runs.items()):
        if not trace.steady:
            break
        kept = share
    return kept


def _median(drains: list[Drained], what: str) -> float:
    return float(np.median([getattr(one, what) for one in drains]))


def _table(sweep: Sweep, capacity: float) -> Table:
    table = Table(title=f"Offered load against what one task can do ({capacity:,.0f} events/s)", title_justify="left")
    table.add_column("", min_width=22)  # a name, in a terminal of 80 columns
    for column in ("p50", "p99", "max", "done/s", "late (s)", "CPU s/M"):
        table.add_column(column, justify="right")
    table.caption = "late: the last result · CPU s/M: Spark's, for a million events"
    for runs in sweep.values():
        for trace in runs.values():
            numbers = (trace.p50, trace.p99, trace.percentile(100))
            done, cost = f"{trace.throughput:,.0f}", f"{trace.cpu_per_million:,.0f}"
            table.add_row(trace.label, *map(ms, numbers), done, f"{trace.catch_up:.1f}", cost)
    return table
