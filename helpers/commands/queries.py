"""The queries and triggers of the command line. Notebooks write theirs in the cell, where you can see them."""

from collections.abc import Callable
from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from helpers.ruler.experiment import Query, Setup
from helpers.ruler.load import Load
from helpers.ruler.route import Route
from helpers.settings import FETCH_WAIT_MS, INTERVAL, LINGER_MS, MANAGER

Transform = Callable[[DataFrame], DataFrame]

EVENT = "event_id STRING, event_time LONG, payload STRING"
TUNED = {"kafka.fetch.max.wait.ms": str(FETCH_WAIT_MS)}
MICRO = {"processingTime": "0 seconds"}
REAL = {"realTime": INTERVAL}
LINGER = {"kafka.linger.ms": f"{LINGER_MS:g}"}
ASYNC = {"asyncProgressTrackingEnabled": True}
FORKS = {MANAGER: None}  # who writes checkpoint files as installed: Hadoop's FileContext, which starts processes
INSTALLED, BEST, REAL_TIME = "micro-batch, as installed", "micro-batch, at its best", "real-time"


def forward(spark: SparkSession, source: dict | None = None, sink: dict | None = None) -> Query:
    """Stateless: parse each JSON event and write it out again, as in the benchmark article."""

    def transform(events: DataFrame) -> DataFrame:
        event = F.from_json(F.col("value").cast("string"), EVENT)
        return events.select("key", F.to_json(event).alias("value"))

    return kafka_to_kafka(spark, transform, source, sink)


def ladder(spark: SparkSession, load: Load) -> dict[str, Setup]:
    """The stateless query from Spark's defaults to the best that micro-batch can do, a step at a time; then Real-Time.

    Each step keeps the settings of those before it. The last step of micro-batch and Real-Time Mode differ in the
    trigger, and in what Real-Time Mode brings by itself: it writes a stateless query's logs asynchronously, too.
    """
    slow, quick = replace(load, linger_ms=0), replace(load, linger_ms=LINGER_MS)
    tuned = forward(spark, TUNED, LINGER)
    return {
        "installed": Setup(INSTALLED, forward(spark), MICRO, slow, conf=FORKS),
        "fetch": Setup(f"micro-batch, + fetch wait {FETCH_WAIT_MS} ms", forward(spark, TUNED), MICRO, slow, conf=FORKS),
        "linger": Setup(f"micro-batch, + linger {LINGER_MS} ms", tuned, MICRO, quick, conf=FORKS),
        "nofork": Setup("micro-batch, + no forks", tuned, MICRO, quick),
        "async": Setup(BEST, forward(spark, TUNED, LINGER | ASYNC), MICRO, quick),
        "realtime": Setup(REAL_TIME, tuned, REAL, quick),
    }


def count_per_key(spark: SparkSession, source: dict | None = None, sink: dict | None = None) -> Query:
    """Stateful, with a shuffle: a running count for every key."""

    def transform(events: DataFrame) -> DataFrame:
        return events.groupBy("key").count().select("key", F.to_json(F.struct("count")).alias("value"))

    return kafka_to_kafka(spark, transform, source, sink)


def kafka_to_kafka(
    spark: SparkSession, transform: Transform, source: dict | None = None, sink: dict | None = None
) -> Query:
    """Events in, what `transform` makes of them out."""

    def query(route: Route):
        events = (
            spark.readStream.format("kafka")
            .option("kafka.bootstrap.servers", route.bootstrap)
            .option("subscribe", route.events)
            .option("startingOffsets", "earliest")
            .options(**(source or {}))
            .load()
        )
        return (
            transform(events)
            .writeStream.format("kafka")
            .option("kafka.bootstrap.servers", route.bootstrap)
            .option("topic", route.results)
            .option("checkpointLocation", route.checkpoint)
            .options(**(sink or {}))
            .outputMode("update")
        )

    return query
