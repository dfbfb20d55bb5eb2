"""A fault that happens once: the next row that reaches it fails, and when the task is tried again, it does not.

A broken disk or a lost connection is like that. Whether one ends your query depends on who tries again.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from helpers.errors import LabError
from helpers.evidence import stages
from helpers.faults.pipeline import Pipeline
from helpers.faults.victim import SparkQuery

NAME = "lab.fault"  # a property of the JVM: whoever reads it first takes it away
PLANTED = "planted"
STRUCK_SECONDS = 30
SETTLED_SECONDS = 60
SEEN_SECONDS = 1.5  # Spark's page is that much behind


@dataclass(frozen=True)
class Outcome:
    """What one failed task led to."""

    alive: bool  # the query runs on
    attempts: int  # of the task that failed
    repeated: int  # result rows that came again, although nobody restarted anything
    lost: int  # events without a result when all was over, if the query runs on


def breaks_once() -> Column:
    """True for one row after `plant`, then never again."""
    return F.expr(f"reflect('java.lang.System', 'clearProperty', '{NAME}')") == PLANTED  # without it: the word "null"


def plant(spark: SparkSession) -> None:
    """The next row that meets `breaks_once` in this Spark is the unlucky one."""
    if not spark.sparkContext.master.startswith("local["):
        raise LabError("The fault lives in one JVM: it needs Spark in local mode. Unset LAB_SPARK_MASTER.")
    spark._jvm.java.lang.System.setProperty(NAME, PLANTED)


def strike(
    spark: SparkSession, pipeline: Pipeline, query: SparkQuery, trigger: dict[str, str], after: float
) -> Outcome:
    """Run the query in this Spark, let a task fail when a checkpoint is `after` seconds old: what comes of it?"""
    known = stages.newest(spark)
    running = query(spark, pipeline.route).trigger(**trigger).start()
    try:
        pipeline.feed(running)
        pipeline.wait_for_checkpoint(after)
        plant(spark)
        _until(lambda: spark._jvm.java.lang.System.getProperty(NAME) is None, STRUCK_SECONDS, "no row met the fault")
        sent = pipeline.sent
        _until(lambda: not running.isActive or pipeline.accounted >= sent, SETTLED_SECONDS, "the query did not go on")
        time.sleep(SEEN_SECONDS)
        attempts = _attempts(spark, known)
        alive = running.isActive
        if alive:
            pipeline.finish()
        return Outcome(alive, attempts, sum(row.again for row in pipeline.rows), pipeline.sent - pipeline.accounted)
    finally:
        spark._jvm.java.lang.System.clearProperty(NAME)
        running.stop()


def _attempts(spark: SparkSession, known: int) -> int:
    """The most attempts that a task had, in the stages after the one with this number."""
    newer = [stage for stage in stages.ask(spark, "stages?details=true") if stage["stageId"] > known]
    return 1 + max(task["attempt"] for stage in newer for task in (stage.get("tasks") or {}).values())


def _until(done: Callable[[], bool], seconds: float, otherwise: str) -> None:
    deadline = time.monotonic() + seconds
    while not done():
        if time.monotonic() > deadline:
            raise LabError(f"Within {seconds:.0f} s {otherwise}. Does the query use breaks_once()?")
        time.sleep(0.02)
