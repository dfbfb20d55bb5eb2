"""A batch job beside a streaming query on the same slots: does the query live?"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from helpers.engines.kafka import Kafka
from helpers.errors import explain
from helpers.evidence.partitions import wait_for_reports
from helpers.evidence.refusal import ACCEPTED, Refusal, parse
from helpers.ruler.experiment import Setup, running


@dataclass(frozen=True)
class Beside:
    """What became of a query beside a job. `ended` is what Spark said, false if it lives; `seconds` until then."""

    ended: Refusal
    seconds: float
    intervals: int  # that the query ended meanwhile


def beside(spark: SparkSession, kafka: Kafka, setup: Setup, job: Callable[[], object]) -> Beside:
    """Start the query, let its first interval end, start the job, and look until the query dies or two more ended.

    The job is waited for: it is an ordinary job that needs no help, only its time.
    """
    with running(spark, kafka, setup) as (_, query):
        wait_for_reports(query, 1)
        before = len(query.recentProgress)
        thread, began = threading.Thread(target=job, daemon=True), time.monotonic()
        thread.start()
        try:
            while query.isActive and (thread.is_alive() or len(query.recentProgress) < before + 2):
                time.sleep(0.1)
            seconds = time.monotonic() - began
            return Beside(_ended(query), seconds, len(query.recentProgress) - before)
        finally:
            thread.join()


def _ended(query: StreamingQuery) -> Refusal:
    if query.isActive:
        return ACCEPTED
    problem = query.exception()
    return parse(problem) if problem is not None else Refusal("ENDED", explain(None))
