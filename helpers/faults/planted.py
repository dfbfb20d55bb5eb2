"""Faults that are planted while a run is measured: at a moment, on purpose, and over when the run is."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress

from pyspark.sql import SparkSession

from helpers.engines import janitor
from helpers.engines.machine import core_count
from helpers.engines.spark import is_local, jvm_pid
from helpers.errors import LabError, first_line
from helpers.ruler.load import Load
from helpers.ruler.probe import Probe
from helpers.ruler.trace import Trace
from helpers.ruler.watch import Around, Watch

Fault = Callable[[], object]
BUSY = "import sys, time\nend = time.monotonic() + float(sys.argv[1])\nwhile time.monotonic() < end: pass"
PER_CORE = 8  # processes of a noisy neighbour
LIVE_ROWS = 6_000_000


class Planted(Around):
    """Another watch, and faults that strike at their second of the measured time, each in a thread of its own."""

    def __init__(self, watch: Watch, faults: Mapping[float, Fault]) -> None:
        super().__init__(watch)
        self._faults = dict(faults)
        self._threads: list[threading.Thread] = []
        self._failed: list[str] = []
        self._over = threading.Event()

    def begin(self, setup_name: str, load: Load) -> None:
        late = [second for second in self._faults if not 0 <= second < load.seconds]
        if late:
            raise LabError(f"A fault at {late[0]:g} s: only {load.seconds:g} s are measured. Choose an earlier moment.")
        self._over.clear()  # a run that is made again has its faults again
        self._threads, self._failed = [], []
        super().begin(setup_name, load)

    def look(self, probe: Probe) -> None:
        begun = probe.status.get("measure_from")
        if begun is not None and not self._threads:
            self._threads = [
                threading.Thread(target=self._strike, args=(begun + second, fault), daemon=True)
                for second, fault in self._faults.items()
            ]
            for thread in self._threads:
                thread.start()
        super().look(probe)

    def end(self, trace: Trace | None) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()
        super().end(trace)
        if self._failed and trace is not None:
            raise LabError(f"A fault could not be planted, so this run shows nothing: {'; '.join(self._failed)}.")

    def _strike(self, at: float, fault: Fault) -> None:
        if not self._over.wait(max(0.0, at - time.time())):
            try:
                fault()
            except Exception as problem:
                self._failed.append(first_line(problem))


def frozen_spark(seconds: float) -> Fault:
    """Spark's whole process stands still, as in a virtual machine that its host pauses."""

    def fault() -> None:
        pid = jvm_pid()
        os.kill(pid, signal.SIGSTOP)
        try:
            time.sleep(seconds)
        finally:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    return fault


def noisy_neighbour(seconds: float) -> Fault:
    """Other processes want every core, several times over."""

    def fault() -> None:
        words = [sys.executable, "-c", BUSY, str(seconds)]
        busy = [subprocess.Popen(words, start_new_session=True) for _ in range(PER_CORE * core_count())]
        for process in busy:
            janitor.kill_at_exit(process.pid)
        for process in busy:
            process.wait()
            janitor.forget(process.pid)

    return fault


def full_collection(spark: SparkSession) -> Fault:
    """A full collection, as Spark's own cleaner asks for one every 30 minutes (spark.cleaner.periodicGC.interval)."""
    return lambda: spark._jvm.java.lang.System.gc()


@contextmanager
def trouble(spark: SparkSession) -> Iterator[dict[float, Fault]]:
    """What is wrong with the troubled job of lesson 06, beyond its checkpoint interval. Look here when you know it."""
    with live_objects(spark):
        yield {2.5: full_collection(spark), 7.0: noisy_neighbour(2.0), 12.5: full_collection(spark)}


@contextmanager
def live_objects(spark: SparkSession, rows: int = LIVE_ROWS) -> Iterator[None]:
    """A table cached as Java objects: a heap full of what must not be collected, and is looked at all the same."""
    if not is_local(spark):
        raise LabError("The objects must live in the JVM that is measured: it needs Spark in local mode.")
    cached = spark.range(rows)._jdf.javaRDD().cache()
    try:
        cached.count()
        spark._jvm.java.lang.System.gc()  # they are old now, as in a job that has run for an hour
        yield
    finally:
        cached.unpersist()
        spark._jvm.java.lang.System.gc()  # now, not in the middle of what is measured next
