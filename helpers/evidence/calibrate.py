"""Make a row cost the same on every machine: how many rounds of some work take so many milliseconds here?"""

import time
from collections.abc import Callable

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from helpers.errors import LabError

ROUNDS, ROWS = 2_000, 500
TRIES, SETTLED = 12, 0.97  # the JVM gets faster while it warms up; stop when it no longer does


def rounds_for(spark: SparkSession, work: Callable[[int], Column], ms: float) -> int:
    """The number of rounds for which `work(rounds)`, on a text column `last`, takes `ms` per row on one core."""
    if not 0 < ms <= 1_000:
        raise LabError(f"ms={ms}: a row may cost more than 0 and at most 1,000 milliseconds.")
    rows = spark.range(ROWS, numPartitions=1).select(F.col("id").cast("string").alias("last"))
    best, patience = float("inf"), 3
    for _ in range(TRIES):
        began = time.monotonic()
        rows.select(work(ROUNDS).alias("result")).write.format("noop").mode("overwrite").save()
        took = time.monotonic() - began
        patience -= took > SETTLED * best
        best = min(best, took)
        if not patience:
            break
    return max(1, round(ROUNDS * ms / (best / ROWS * 1_000)))
