"""Too few slots without a shuffle: Real-Time Mode then leaves partitions unread, and Spark does not say so."""

import re

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming import DataStreamWriter

SOURCE = re.compile(r"^\W*StreamingRelation", re.MULTILINE)
SHUFFLE = re.compile(r"^[\s:+-]*(\*\(\d+\) )?Exchange ", re.MULTILINE)  # a broadcast has another name


def free_slots(spark: SparkSession) -> int:
    """Slots that no task holds now, as Spark's own scheduler knows it (its web page may be seconds behind)."""
    context = spark.sparkContext
    return context.defaultParallelism - context._jsc.sc().taskScheduler().taskIdToTaskSetManager().size()


def starvation(spark: SparkSession, writer: DataStreamWriter, trigger: dict[str, str], partitions: int) -> str:
    """A warning if a query that reads topics of so many partitions would leave some unread; else nothing.

    With a shuffle Spark counts the slots itself, and refuses.
    """
    if "realTime" not in trigger:
        return ""
    plan = writer._df._jdf.queryExecution()
    tasks, free = partitions * len(SOURCE.findall(plan.analyzed().toString())), free_slots(spark)
    if tasks <= free or _shuffles(spark, plan):
        return ""
    return (
        f"Warning: {tasks} partitions to read, slots free: {free}. Without a shuffle Spark does not refuse that: "
        f"Real-Time Mode leaves {tasks - free} of them unread and says nothing. Ask for more slots, "
        "start_lab(slots=…), or read fewer partitions."
    )


def _shuffles(spark: SparkSession, plan) -> bool:
    jvm = spark._jvm
    assert jvm is not None
    try:
        return bool(SHUFFLE.search(jvm.PythonSQLUtils.explainString(plan, "simple")))
    except PySparkException:
        return True  # it cannot be planned: Spark will say why when it starts
