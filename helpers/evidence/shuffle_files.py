"""Where a micro-batch shuffle lives: files under spark.local.dir, counted."""

import time
from pathlib import Path

from pyspark.sql import SparkSession

from helpers.ruler.load import Load
from helpers.ruler.probe import Probe
from helpers.ruler.trace import Trace
from helpers.ruler.watch import Watch


def shuffle_files(spark: SparkSession) -> dict[str, int]:
    """Every shuffle file that is on disk now, by name, with its size in bytes."""
    found = {}
    for path in Path(spark.conf.get("spark.local.dir")).rglob("shuffle_*"):
        try:
            found[path.name] = path.stat().st_size
        except FileNotFoundError:
            continue  # Spark's cleaner was faster
    return found


class FileCounter(Watch):
    """Counts the shuffle files that runs write, at every look: Spark deletes some before a run is over."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self.written: dict[str, dict[str, int]] = {}  # by run: the files that it wrote, whether still there or not
        self.counts: dict[str, list[tuple[float, int]]] = {}  # by run: seconds since it began, files so far

    def begin(self, setup_name: str, load: Load) -> None:
        self._name, self._began = setup_name, time.monotonic()
        self._before = set(shuffle_files(self._spark))
        self.written[setup_name], self.counts[setup_name] = {}, []

    def look(self, probe: Probe) -> None:
        self._count()

    def end(self, trace: Trace | None) -> None:
        self._count()

    def _count(self) -> None:
        new = {name: size for name, size in shuffle_files(self._spark).items() if name not in self._before}
        self.written[self._name] |= new
        self.counts[self._name].append((time.monotonic() - self._began, len(self.written[self._name])))
