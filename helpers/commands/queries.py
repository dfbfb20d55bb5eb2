"""The queries and triggers of the command line. Notebooks write theirs in the cell, where you can see them."""

from collections.abc import Callable

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from helpers.ruler.experiment import Query
from helpers.ruler.route import Route
from helpers.settings import FETCH_WAIT_MS, INTERVAL

Transform = Callable[[DataFrame], DataFrame]

EVENT = "event_id STRING, event_time LONG, payload STRING"
TUNED = {"kafka.fetch.max.wait.ms": str(FETCH_WAIT_MS)}
MICRO = {"processingTime": "0 seconds"}
REAL = {"realTime": INTERVAL}


def forward(spark: SparkSession, source: dict | None = None, sink: dict | None = None) -> Query:
    """Stateless: parse each JSON event and write it out again, as in the benchmark article."""

    def transform(events: DataFrame) -> DataFrame:
        event = F.from_json(F.col("value").cast("string"), EVENT)
        return events.select("key", F.to_json(event).alias("value"))

    return kafka_to_kafka(spark, transform, source, sink)


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
