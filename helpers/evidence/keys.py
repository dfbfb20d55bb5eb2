"""Which task an event went through: its key decides, in a shuffle, or its partition in Kafka."""

from dataclasses import replace

import numpy as np
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from helpers.errors import LabError
from helpers.ruler.load import KEY_CYCLE, Load, pick_keys
from helpers.ruler.trace import Trace


def by_task(trace: Trace, spark: SparkSession, partitions: int) -> dict[int, Trace]:
    """The trace of a `groupBy("key")`, split by the task of its shuffle; the one with the most events first."""
    if not len(trace.samples):
        raise LabError(f"{trace.name}: no event was measured, so there is nothing to split.")
    load = Load(**trace.meta["load"])
    key = pick_keys(load, KEY_CYCLE)[trace.samples["event"] % KEY_CYCLE]
    task = task_of_keys(spark, load.keys, partitions)[key]
    parts = {n: replace(trace, name=f"task {n}", samples=trace.samples[task == n]) for n in range(partitions)}
    return dict(sorted(parts.items(), key=lambda item: -len(item[1].samples)))


def by_partition(trace: Trace) -> dict[int, Trace]:
    """A trace, split by the partition of the events topic; the one with the most events first."""
    numbers, counts = np.unique(trace.samples["partition"], return_counts=True)
    return {
        int(number): replace(
            trace, name=f"partition {number}", samples=trace.samples[trace.samples["partition"] == number]
        )
        for number in numbers[np.argsort(-counts)]
    }


def task_of_keys(spark: SparkSession, keys: int, partitions: int) -> np.ndarray:
    """The task of each of the probe's keys: `pmod(hash(key), partitions)`, and Spark itself is asked for it."""
    key = F.concat(F.lit("k"), F.col("id").cast("string")).cast("binary")
    rows = spark.range(keys, numPartitions=1).select(F.pmod(F.hash(key), F.lit(partitions)))
    return np.array([row[0] for row in rows.collect()])
