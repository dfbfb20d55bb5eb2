"""Try a query that Spark may refuse, and keep what Spark says: an error worth reading is a lesson."""

import re
import time
from dataclasses import dataclass

from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from helpers.errors import LabError, explain

PATIENCE = 60.0  # seconds until a query must have begun to work, or been refused


@dataclass(frozen=True)
class Refusal:
    """Spark's error: its condition, which is a fixed word, and its sentences. False if there is none: it runs."""

    condition: str
    text: str

    def __bool__(self) -> bool:
        return bool(self.condition)

    def __str__(self) -> str:
        return f"[{self.condition}] {self.text}" if self else self.text


ACCEPTED = Refusal("", "Accepted: the query runs.")


def parse(problem: Exception) -> Refusal:
    """The condition and the sentences, without the state of the query behind them."""
    first = str(problem).strip().split("\n")[0]
    found = re.match(r"\[([A-Z_]+(?:\.[A-Z_]+)?)\] (.*?)(?: SQLSTATE: \w+)?$", first)
    if found is None:
        raise LabError(explain(problem)) from problem
    return Refusal(found[1], found[2])


def wait(spark: SparkSession, query: StreamingQuery) -> Refusal:
    """What Spark says against this query; ACCEPTED once its first task runs."""
    deadline = time.monotonic() + PATIENCE
    while query.isActive:
        if _works(spark):
            return ACCEPTED
        if time.monotonic() > deadline:
            raise LabError(f"After {PATIENCE:.0f} s the query neither works nor is it refused: {query.status}")
        time.sleep(0.1)
    problem = query.exception()
    if problem is None:
        raise LabError(explain(problem))
    return parse(problem)


def _works(spark: SparkSession) -> bool:
    """Every stage that Spark has begun has a task that runs."""
    tracker = spark.sparkContext.statusTracker()
    begun = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
    return bool(begun) and all(stage is not None and stage.numActiveTasks for stage in begun)
