"""What a notebook starts in its first cell: a broker, a Spark, and a way to measure."""

import atexit
import time
from collections.abc import Callable
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from helpers.engines.doctor import doctor
from helpers.engines.kafka import Kafka, start_kafka
from helpers.engines.spark import start_spark, stop_spark
from helpers.errors import LabError, first_line
from helpers.evidence import refusal, stages
from helpers.evidence.neighbours import Beside, beside
from helpers.evidence.partitions import Coverage, cover
from helpers.evidence.refusal import Refusal
from helpers.evidence.rows import Kept
from helpers.faults.once import Outcome, strike
from helpers.faults.pipeline import Pipeline
from helpers.faults.planted import Fault, Planted
from helpers.faults.victim import SparkQuery, Understudy
from helpers.figures.live import LiveView
from helpers.ruler.bulk import Drained
from helpers.ruler.cost import cost_for
from helpers.ruler.experiment import Query, Setup, how_fast, interleave, measure, measure_ruler, running
from helpers.ruler.load import Load
from helpers.ruler.trace import Trace
from helpers.ruler.watch import Watch
from helpers.settings import LINGER_MS, PACES, SLOTS, pace

_running: "Lab | None" = None


class Lab:
    """One broker and one Spark for a notebook. `measure` one run, or `race` several in turn."""

    def __init__(self, slots: int, conf: dict[str, Any]) -> None:
        self.pace = pace()
        self._lines: list[str] = []
        self._slots, self._conf = slots, conf
        self.kafka: Kafka = start_kafka(say=self._lines.append)
        try:
            self.spark = start_spark(slots, **conf)
        except BaseException:
            self.kafka.stop()
            raise
        self._lines.append(f"Spark: {self.spark.version} on {self.spark.sparkContext.master}, UI at {self.ui}")
        self._lines.append(f"Pace: {self.pace} (LAB_PACE)")
        self._pipeline: Pipeline | None = None
        self._understudy = Understudy(slots)
        atexit.register(self.end)

    @property
    def slots(self) -> int:
        """How many tasks can run at once: what was asked for, unless LAB_SPARK_MASTER overrules it."""
        return self.spark.sparkContext.defaultParallelism

    @property
    def ui(self) -> str:
        """Spark's own web page."""
        return self.spark.sparkContext.uiWebUrl

    def about(self) -> None:
        """Which broker was chosen and why, and where Spark's page is."""
        print("\n".join(self._lines))

    def measure(
        self,
        name: str,
        query: Query,
        trigger: dict[str, str],
        watch: Watch | None = None,
        planted: dict[float, Fault] | None = None,
        **settings: Any,
    ) -> Trace:
        """Run your query under a trigger, live, and return its trace. `watch` shows something other than latency.

        `planted` has faults that strike meanwhile, by the second of the measured time (`helpers.faults.planted`).
        """
        setup, watch = self.setup(name, query, trigger, **settings), watch or LiveView()
        return measure(self.spark, self.kafka, setup, Planted(watch, planted) if planted else watch)

    def rows(self, name: str, query: Query, trigger: dict[str, str], **settings: Any) -> list[dict]:
        """Run your query under a trigger, and return what it wrote: each row's JSON, and the broker's `appended_ms`."""
        kept = Kept(self.kafka, LiveView())
        measure(self.spark, self.kafka, self.setup(name, kept.of(query), trigger, **settings), kept)
        return kept.rows

    def race(self, query: Query, triggers: dict[str, dict[str, str]], rounds: int = 2, **settings: Any) -> list[Trace]:
        """The same query under several triggers, interleaved, live in one figure."""
        setups = [self.setup(name, query, trigger, **settings) for name, trigger in triggers.items()]
        return self.compare(setups, rounds)

    def compare(self, setups: list[Setup], rounds: int = 2) -> list[Trace]:
        """Several set-ups, live in one figure: each thrown away once, then A/B/B/A, for so many rounds."""
        return list(interleave(self.spark, self.kafka, setups, rounds, LiveView()).values())

    def setup(
        self,
        name: str,
        query: Query,
        trigger: dict[str, str],
        conf: dict | None = None,
        partitions: int = 1,
        fill: int = 0,
        **load,
    ) -> Setup:
        """One thing to compare: a query under a trigger, with session settings (`conf`) and changes of the load.

        `fill` events, one key after the other, are there when the query starts, and are not measured.
        """
        if not isinstance(partitions, int) or not 1 <= partitions <= 100:
            raise LabError(f"partitions={partitions!r}: the events topic can have 1 to 100.")
        if not isinstance(fill, int) or not 0 <= fill <= 2_000_000:
            raise LabError(f"fill={fill!r}: choose from 0 to 2,000,000 events.")
        return Setup(name, query, trigger, self.load(load), partitions, conf or {}, fill)

    def how_fast(self, name: str, query: Query, trigger: dict[str, str], events: int, **settings: Any) -> Drained:
        """Let your query work off events that are there when it starts: how many a second, and at what cost?"""
        return how_fast(self.spark, self.kafka, self.setup(name, query, trigger, fill=events, **settings))

    def refusal(self, query: Query, trigger: dict[str, str], partitions: int = 1) -> Refusal:
        """What Spark says against this query; false if it runs. Either way it is stopped again."""
        try:
            with running(self.spark, self.kafka, Setup("tried", query, trigger, partitions=partitions)) as (_, started):
                return refusal.wait(self.spark, started)
        except PySparkException as problem:
            return refusal.parse(problem)

    def coverage(self, query: Query, trigger: dict[str, str], partitions: int = 1) -> Coverage:
        """Which partitions of its topic your query reads, when each gets the same number of events."""
        name = "Real-Time Mode" if "realTime" in trigger else "micro-batch"
        return cover(self.spark, self.kafka, self.setup(name, query, trigger, partitions=partitions))

    def beside(self, query: Query, trigger: dict[str, str], job: Callable[[], object]) -> Beside:
        """What becomes of your query when a batch job starts beside it, on the same slots."""
        return beside(self.spark, self.kafka, self.setup("beside", query, trigger), job)

    def idle(self, query: Query, trigger: dict[str, str], seconds: float = 5) -> dict[str, float]:
        """What your query takes while nobody sends anything: `slots` held, `cores` used."""
        with running(self.spark, self.kafka, Setup("idle", query, trigger)):
            time.sleep(seconds)  # the start is not idle
            used = cost_for(seconds)
            return {"slots": stages.read(self.spark).slots_held, "cores": used["cores"]}

    def ruler(self, client: str, **load: object) -> Trace:
        """The probe alone, with no Spark between sending and reading: what the instrument itself adds."""
        return measure_ruler(self.kafka, self.load({**load, "client": client, "linger_ms": 0}), client, LiveView())

    def pipeline(self, query: SparkQuery, **settings: int) -> Pipeline:
        """Events, results, and your query between them in a process that can be killed. Ends the one before."""
        self._close_pipeline()
        self._pipeline = Pipeline(self.kafka, query, self._understudy, **settings)
        return self._pipeline

    def fault(self, query: SparkQuery, trigger: dict[str, str], after: float, **settings: int) -> Outcome:
        """What one task that fails once does to your query, which runs in the lab's own Spark: see `faults.once`."""
        return strike(self.spark, self.pipeline(query, **settings), query, trigger, after)

    def restart(self, **conf: Any) -> SparkSession:
        """Another Spark in place of this one, on the same broker: with these settings, and those of the set-up cell."""
        self.spark = start_spark(self._slots, **(self._conf | conf))
        return self.spark

    def set(self, name: str, value: object) -> None:
        """Change a setting of the running Spark that it reads when a query starts (most are read only once)."""
        self.spark.sparkContext._jsc.sc().conf().set(name, str(value))

    def doctor(self) -> bool:
        """What this machine has and lacks; True if that is enough."""
        return doctor()

    def load(self, changes: dict) -> Load:
        """What is sent at this pace, with some settings changed."""
        at = PACES[self.pace]
        return Load(seconds=at.seconds, warmup=at.warmup, linger_ms=LINGER_MS).changed(**changes)

    def stop(self) -> None:
        """Stop Spark and the broker, and say so. Safe to run twice."""
        self.end()
        print("Stopped: Spark and Kafka.")

    def end(self) -> None:
        """Stop all of it: what cannot be stopped (it died already) keeps nothing else from being stopped."""
        atexit.unregister(self.end)
        failed = []
        for stop in (self._close_pipeline, self._understudy.close, stop_spark, self.kafka.stop):
            try:
                stop()
            except Exception as problem:
                failed.append(first_line(problem))
        if failed:
            print(f"Note: not all of it stopped in good order ({'; '.join(failed)}). The rest ends with the kernel.")

    def _close_pipeline(self) -> None:
        if self._pipeline is not None:
            self._pipeline.close()
            self._pipeline = None


def start_lab(slots: int = SLOTS, **conf: object) -> Lab:
    """Start everything a lesson needs; prints one line that is always the same.

    Run again it ends what it started before, however that fared meanwhile, and starts anew.
    """
    global _running
    if _running is not None:
        _running.end()
    lab = _running = Lab(slots, conf)
    print(f"Ready: a Kafka broker, and Spark with {lab.slots} slots.")
    return lab
