"""Run a query under a trigger at a rate, and get its trace.

The query is yours, in plain PySpark: a function that takes a `Route` and returns the stream writer.
Everything around it (topics, checkpoint folder, load, measurement, clean-up) happens here.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from typing import TypeVar

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming import DataStreamWriter, StreamingQuery

from helpers.engines.kafka import Kafka
from helpers.engines.spark import GONE, stops
from helpers.errors import LabError, explain
from helpers.ruler.bulk import Drained, drain, fill
from helpers.ruler.cost import Meter
from helpers.ruler.folder import files_of
from helpers.ruler.load import Load
from helpers.ruler.probe import Probe
from helpers.ruler.provenance import of_spark, provenance
from helpers.ruler.route import Route, fresh_route
from helpers.ruler.slots import starvation
from helpers.ruler.trace import Trace, measured
from helpers.ruler.watch import Bar, Watch
from helpers.settings import LOOK_SECONDS

SLOTS_FREE_WITHIN = 10  # seconds
THROWN_AWAY_SECONDS = 1  # measured after the warm-up of a run that only warms up
STILL_FASTER = 0.95  # of the fastest median so far: below it a query is still warming up

Query = Callable[[Route], DataStreamWriter]
Turn = TypeVar("Turn")


@dataclass(frozen=True)
class Setup:
    """One thing to measure: this query, under this trigger, with this load."""

    name: str
    query: Query
    trigger: dict[str, str]
    load: Load = field(default_factory=Load)
    partitions: int = 1  # of the events topic
    conf: Mapping[str, object] = field(default_factory=dict)  # session settings; None: Spark's own choice
    fill: int = 0  # events that are there when it starts, one per key: state to have before it is measured


def measure(spark: SparkSession, kafka: Kafka, setup: Setup, watch: Watch | None = None) -> Trace:
    """One run, from fresh topics to a trace. Nothing of it is left afterwards.

    If the whole machine stood still meanwhile (a laptop that slept, a virtual machine that was paused) or its clock
    was set, the run says nothing about Spark: it is made once more, and that round says why.
    """
    trace = _measure_once(spark, kafka, setup, watch)
    if trace.spoilt:
        reason = trace.spoilt
        trace = _measure_once(spark, kafka, setup, watch)
        trace.rounds[0]["redone"] = f"in the first attempt {reason}"
    return trace


def _measure_once(spark: SparkSession, kafka: Kafka, setup: Setup, watch: Watch | None) -> Trace:
    with _explained(), running(spark, kafka, setup) as (route, query):
        if setup.fill:
            drain(kafka, route, setup.fill, lambda: _ended(query), setup.name)
        trace = _observe(kafka, route, setup.load, setup.name, watch or Bar(), query, setup.fill)
        with session_settings(spark, setup.conf):
            trace.meta |= {"trigger": setup.trigger, "conf": dict(setup.conf), **of_spark(spark)}
        trace.rounds[0]["progress"] = [progress_of(report) for report in query.recentProgress]
        trace.rounds[0]["checkpoint"] = files_of(route.checkpoint)
        trace.rounds[0]["stops"] = _stops(spark, kafka, trace.rounds[0])
        return trace


@contextmanager
def _explained() -> Iterator[None]:
    """Spark's errors as sentences."""
    try:
        yield
    except PySparkException as problem:
        raise LabError(explain(problem)) from problem
    except (Py4JError, ConnectionError) as problem:
        raise LabError(GONE) from problem


def _stops(spark: SparkSession, kafka: Kafka, lap: dict) -> dict[str, list[dict]]:
    """When the two JVMs stood still in a round, and a little before and after it."""
    span = lap["measure_from"] - 1, lap["measure_to"] + 1
    return {
        "Spark": [asdict(stop) for stop in stops(spark, *span)],
        "Kafka": [asdict(stop) for stop in kafka.stops(*span)],
    }


@contextmanager
def running(spark: SparkSession, kafka: Kafka, setup: Setup) -> Iterator[tuple[Route, StreamingQuery]]:
    """The query, started on fresh topics, with no load; stopped afterwards, and nothing of it is left.

    If it would leave partitions unread, which Spark does not say, that is printed.
    """
    with fresh_route(kafka, setup.partitions) as route:
        if setup.fill:
            fill(kafka, route.events, setup.fill, setup.load.keys, setup.load.payload)
        query = None
        try:
            with session_settings(spark, setup.conf):
                writer = setup.query(route)
                if warning := starvation(spark, writer, setup.trigger, setup.partitions):
                    print(warning)
                query = writer.trigger(**setup.trigger).start()
            yield route, query
        finally:
            if query is not None:
                with suppress(Py4JError, ConnectionError):  # no JVM any more: nothing to stop
                    query.stop()
                    _wait_for_free_slots(spark)


@contextmanager
def session_settings(spark: SparkSession, conf: Mapping[str, object]) -> Iterator[None]:
    """Spark settings for what starts inside; a query keeps those that it was started with. None means unset."""
    before = {name: spark.conf.get(name, None) for name in conf}
    _set(spark, conf)
    try:
        yield
    finally:
        with suppress(Py4JError, ConnectionError):  # no JVM any more: nothing to restore
            _set(spark, before)


def _set(spark: SparkSession, conf: Mapping[str, object]) -> None:
    for name, value in conf.items():
        if value is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, value)


def _wait_for_free_slots(spark: SparkSession) -> None:
    """A stopped query's tasks hold their slots a moment longer, and the next query counts the free ones at once."""
    deadline = time.monotonic() + SLOTS_FREE_WITHIN
    tracker = spark.sparkContext._jsc.sc().statusTracker()
    while any(executor.numRunningTasks() for executor in tracker.getExecutorInfos()) and time.monotonic() < deadline:
        time.sleep(0.05)


def measure_ruler(kafka: Kafka, load: Load, name: str = "ruler", watch: Watch | None = None) -> Trace:
    """The probe measuring itself: what it sends is what it reads, with no Spark in between."""
    with fresh_route(kafka) as route:
        loop = replace(route, results=route.events)
        return _observe(kafka, loop, load, name, watch or Bar(), None)


def there_and_back(those: Sequence[Turn], rounds: int) -> Iterator[Turn]:
    """A, B, B, A, …: each of them in every round, every second round backwards."""
    for number in range(rounds):
        yield from those if number % 2 == 0 else reversed(those)


def interleave(
    spark: SparkSession, kafka: Kafka, setups: list[Setup], rounds: int = 2, watch: Watch | None = None
) -> dict[str, Trace]:
    """Each set-up `rounds` times, its measured seconds split evenly among the rounds; every second round backwards.

    First each is run once and thrown away: who comes first would otherwise pay for compiling what all use. A/B/B/A
    lets slow drifts of the machine (heat, neighbours, caches) fall on all alike. A round needs half the warm-up.
    """
    traces: dict[str, list[Trace]] = {setup.name: [] for setup in setups}
    for setup in setups:
        measure(spark, kafka, replace(setup, load=replace(setup.load, seconds=THROWN_AWAY_SECONDS)), Watch())
    for setup in there_and_back(setups, rounds):
        load = replace(setup.load, seconds=setup.load.seconds / rounds, warmup=setup.load.warmup / 2)
        traces[setup.name].append(measure(spark, kafka, replace(setup, load=load), watch))
    return {name: Trace.join(parts) for name, parts in traces.items()}


def settle(spark: SparkSession, kafka: Kafka, setup: Setup, laps: int) -> list[float]:
    """Run it again and again, until two laps in a row got no faster, at most `laps` times. The median of each lap.

    On two cores a JVM compiles what a micro-batch plans and schedules for many minutes, and gets faster all the time.
    """
    medians: list[float] = []
    while len(medians) < laps:
        medians.append(measure(spark, kafka, setup, Watch()).p50)
        if len(medians) > 2 and min(medians[-2:]) > STILL_FASTER * min(medians[:-2]):
            break
    return medians


def how_fast(spark: SparkSession, kafka: Kafka, setup: Setup) -> Drained:
    """Let a query work off the events that are there when it starts (`fill`): how fast can it, and at what cost?"""
    with _explained(), running(spark, kafka, setup) as (route, query):
        return drain(kafka, route, setup.fill, lambda: _ended(query), setup.name)


def _ended(query: StreamingQuery) -> BaseException | None:
    """Why a query has ended; None while it runs."""
    return None if query.isActive else query.exception() or LabError("the query ended by itself")


def _observe(
    kafka: Kafka, route: Route, load: Load, name: str, watch: Watch, query: StreamingQuery | None, skip: int = 0
) -> Trace:
    """Start the probe, look at it now and then, end with its trace. It leaves the first results alone (`skip`)."""
    clock = "received" if kafka.backend == "external" else "appended"  # another machine has another clock
    trace = None
    with Probe(route.bootstrap, route.events, route.results, load, clock, skip) as probe:
        meter = Meter([os.getpid(), probe.pid, kafka.pid]) if query is not None else None
        try:
            watch.begin(name, load)
            while not probe.wait(LOOK_SECONDS):
                if query is not None and meter is not None:
                    if not query.isActive:
                        raise LabError(explain(query.exception()))
                    meter.look(probe.status["phase"] == "measuring")
                watch.look(probe)
            summary = probe.result() | ({"cost": meter.cost(), "cpu": meter.series()} if meter else {})
            about = {"backend": kafka.backend, "clock": clock, "load": asdict(load), "rounds": [summary]}
            trace = Trace(name, measured(probe.samples, summary), provenance() | about)
        finally:
            watch.end(trace)
    return trace


def progress_of(progress) -> dict:
    """What a batch cost, from Spark's own report."""
    return {
        "batch": progress.batchId,
        "timestamp": progress.timestamp,
        "rows": progress.numInputRows,
        "state": [{"rows": each.numRowsTotal, "bytes": each.memoryUsedBytes} for each in progress.stateOperators],
        "ms": dict(progress.durationMs),
    }
