"""Run a query under a trigger at a rate, and get its trace.

The query is yours, in plain PySpark: a function that takes a `Route` and returns the stream writer.
Everything around it (topics, checkpoint folder, load, measurement, clean-up) happens here.
"""

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from uuid import uuid4

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming import DataStreamWriter, StreamingQuery
from tqdm.auto import tqdm

from helpers.engines.kafka import Kafka
from helpers.errors import LabError
from helpers.evidence.checkpoint import files_of
from helpers.paths import run_dir
from helpers.ruler.cost import Meter
from helpers.ruler.probe import Load, Probe
from helpers.ruler.trace import Trace, measured, provenance

SLOTS_FREE_WITHIN = 10  # seconds
LOOK_SECONDS = 0.5  # how often a run is looked at: the observer must not disturb


@dataclass(frozen=True)
class Route:
    """Where a query reads and writes: fresh for every run."""

    bootstrap: str
    events: str
    results: str
    checkpoint: str


Query = Callable[[Route], DataStreamWriter]


@dataclass(frozen=True)
class Setup:
    """One thing to measure: this query, under this trigger, with this load."""

    name: str
    query: Query
    trigger: dict[str, str]
    load: Load = field(default_factory=Load)
    partitions: int = 1  # of the events topic


class Watch:
    """What is shown while a run goes on. This one shows nothing."""

    def begin(self, setup_name: str, load: Load) -> None:
        """Called once, before anything is sent."""

    def look(self, probe: Probe) -> None:
        """Called about twice a second with the running probe."""

    def end(self, trace: Trace | None) -> None:
        """Called once with the finished trace, or None if the run failed."""


class Bar(Watch):
    """A progress bar, in a terminal or a notebook."""

    def __init__(self) -> None:
        self._bar: tqdm | None = None

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


def measure(spark: SparkSession, kafka: Kafka, setup: Setup, watch: Watch | None = None) -> Trace:
    """One run, from fresh topics to a trace. Nothing of it is left afterwards.

    If the whole machine stood still meanwhile (a laptop that slept, a virtual machine that was paused), the run says
    nothing about Spark: it is made once more, and the trace's `meta` says so.
    """
    trace = _measure_once(spark, kafka, setup, watch)
    if trace.frozen:
        trace = _measure_once(spark, kafka, setup, watch)
        trace.meta["redone"] = "the machine stood still in the first attempt"
    return trace


def _measure_once(spark: SparkSession, kafka: Kafka, setup: Setup, watch: Watch | None) -> Trace:
    try:
        with running(spark, kafka, setup) as (route, query):
            trace = _observe(kafka, route, setup.load, setup.name, watch or Bar(), query)
            trace.meta |= {"trigger": setup.trigger, "slots": spark.sparkContext.defaultParallelism}
            trace.rounds[0]["progress"] = [progress_of(one) for one in query.recentProgress]
            trace.rounds[0]["checkpoint"] = files_of(route.checkpoint)
            return trace
    except PySparkException as problem:
        raise LabError(explain(problem)) from problem


@contextmanager
def running(spark: SparkSession, kafka: Kafka, setup: Setup) -> Iterator[tuple[Route, StreamingQuery]]:
    """The query, started on fresh topics, with no load; stopped afterwards, and nothing of it is left."""
    with fresh_route(kafka, setup.partitions) as route:
        query = None
        try:
            query = setup.query(route).trigger(**setup.trigger).start()
            yield route, query
        finally:
            if query is not None:
                query.stop()
                _wait_for_free_slots(spark)


def _wait_for_free_slots(spark: SparkSession) -> None:
    """A stopped query's tasks hold their slots a moment longer, and the next query counts the free ones at once."""
    deadline = time.monotonic() + SLOTS_FREE_WITHIN
    tracker = spark.sparkContext._jsc.sc().statusTracker()
    while any(one.numRunningTasks() for one in tracker.getExecutorInfos()) and time.monotonic() < deadline:
        time.sleep(0.05)


def measure_ruler(kafka: Kafka, load: Load, name: str = "ruler", watch: Watch | None = None) -> Trace:
    """The probe measuring itself: what it sends is what it reads, with no Spark in between."""
    with fresh_route(kafka) as route:
        loop = replace(route, results=route.events)
        return _observe(kafka, loop, load, name, watch or Bar(), None)


def interleave(
    spark: SparkSession, kafka: Kafka, setups: list[Setup], rounds: int = 2, watch: Watch | None = None
) -> dict[str, Trace]:
    """A/B/A/B: each set-up `rounds` times, in turn, its measured seconds split evenly among the rounds.

    Slow drifts of the machine (heat, neighbours, caches) then fall on all alike.
    """
    traces: dict[str, list[Trace]] = {setup.name: [] for setup in setups}
    for _ in range(rounds):
        for setup in setups:
            part = replace(setup, load=replace(setup.load, seconds=setup.load.seconds / rounds))
            traces[setup.name].append(measure(spark, kafka, part, watch))
    return {name: Trace.join(parts) for name, parts in traces.items()}


@contextmanager
def fresh_route(kafka: Kafka, partitions: int = 1) -> Iterator[Route]:
    """Fresh topics and a fresh checkpoint folder; gone afterwards."""
    run = uuid4().hex[:8]
    route = Route(
        kafka.bootstrap,
        kafka.create_topic(f"events-{run}", partitions, append_time=True),
        kafka.create_topic(f"results-{run}", 1, append_time=True),
        str(run_dir() / f"checkpoint-{run}"),
    )
    try:
        yield route
    finally:
        kafka.delete_topics(route.events, route.results)
        shutil.rmtree(route.checkpoint, ignore_errors=True)


def _observe(kafka: Kafka, route: Route, load: Load, name: str, watch: Watch, query: StreamingQuery | None) -> Trace:
    """Start the probe, look at it now and then, end with its trace."""
    clock = "received" if kafka.backend == "external" else "appended"  # another machine has another clock
    probe = Probe(route.bootstrap, route.events, route.results, load, clock)
    trace, meter = None, Meter() if query is not None else None
    try:
        watch.begin(name, load)
        while not probe.wait(LOOK_SECONDS):
            if query is not None:
                if not query.isActive:
                    raise LabError(explain(query.exception()))
                meter.look(probe.status["phase"] == "measuring")
            watch.look(probe)
        summary = probe.result() | ({"cost": meter.cost()} if meter else {})
        meta = provenance() | {
            "backend": kafka.backend,
            "clock": clock,
            "load": asdict(load),
            "rounds": [summary],
        }
        trace = Trace(name, measured(probe.samples, summary), meta)
    finally:
        probe.stop()
        watch.end(trace)
    return trace


def progress_of(progress) -> dict:
    """What a batch cost, from Spark's own report."""
    return {
        "batch": progress.batchId,
        "timestamp": progress.timestamp,
        "rows": progress.numInputRows,
        "ms": dict(progress.durationMs),
    }


def explain(problem: Exception | None) -> str:
    """Spark's error as a sentence, with a way out where there is a known one."""
    text = str(problem).strip() if problem else "the query ended by itself"
    if "CONCURRENT_SCHEDULER_INSUFFICIENT_SLOT" in text:
        detail = text[text.index("CONCURRENT_SCHEDULER_INSUFFICIENT_SLOT") :].splitlines()[0]
        return (
            f"Too few slots: [{detail} Real-Time Mode runs every task of every stage at once. "
            "Start Spark with more: start_spark(slots=…); slots are threads, so more than cores is fine."
        )
    if "STATE_STORE_CHECKPOINT_LOCATION_NOT_EMPTY" in text:
        return (
            "Spark refuses the checkpoint folder [STATE_STORE_CHECKPOINT_LOCATION_NOT_EMPTY]: a run was killed while "
            "it wrote its very first checkpoint and left a part of it there. Nothing was committed yet: delete the "
            "folder and start again, and the query reads from its first event."
        )
    return f"Spark stopped the query: {text.splitlines()[0][:600]}"


def seconds_done(probe: Probe) -> float:
    """Seconds of warm-up and measurement behind us."""
    begun = probe.status.get("measure_from")
    return 0.0 if begun is None else max(0.0, time.time() - begun + probe.load.warmup)
