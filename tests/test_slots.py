"""Too few slots: who is warned, what Spark refuses, what protects a query from its neighbours, and what is drawn."""

import pytest
from pyspark.sql import functions as F
from test_figures import words

from helpers.commands.queries import TUNED, count_per_key, forward, kafka_to_kafka
from helpers.engines.spark import start_spark, stop_spark
from helpers.errors import LabError
from helpers.evidence import refusal
from helpers.evidence.neighbours import beside
from helpers.evidence.partitions import Coverage
from helpers.figures import coverage_bars
from helpers.ruler.experiment import Setup, running
from helpers.ruler.slots import SHUFFLE

REAL, MICRO = {"realTime": "1 minute"}, {"processingTime": "0 seconds"}
SLOTS = 4
WARNING = (
    "Warning: {} partitions to read, slots free: {}. Without a shuffle Spark does not refuse that: Real-Time Mode "
    "leaves {} of them unread and says nothing. Ask for more slots, start_lab(slots=…), or read fewer partitions.\n"
)

# ---- without an engine


SHORT = Coverage("Real-Time Mode", {0: 300, 1: 300, 2: 300}, {0: 0, 1: 0, 2: 0}, {0: 300, 1: 0, 2: 120}, 2, True)
ENOUGH = Coverage("Real-Time Mode", {0: 300, 1: 0}, {0: 0, 1: 0}, {0: 300, 1: 0}, 2, True)


def test_a_partition_is_unread_if_it_has_news_and_its_offset_never_moved():
    assert SHORT.unread == [1], "2 is behind, and moves"
    assert ENOUGH.unread == [], "1 has no news"
    assert (SHORT.complete, ENOUGH.complete) == (False, True)
    assert str(SHORT) == "420 of 900 events read; never partition 1"
    assert str(ENOUGH) == "300 of 300 events read"


@pytest.mark.parametrize(
    ("coverages", "title"),
    [([SHORT, ENOUGH], "Real-Time Mode never read 1 of 3 partitions"), ([ENOUGH], "Every partition was read")],
)
def test_bars_say_what_was_read_and_their_title_what_that_comes_to(coverages, title):
    shown = words(coverage_bars(coverages))
    assert title in [text.get_text() for text in shown]
    assert {"300", "0"} <= {text.get_text() for text in shown}
    assert min(text.get_fontsize() for text in shown) >= 13


@pytest.mark.parametrize(
    ("plan", "shuffles"),
    [
        ("+- *(2) HashAggregate\n   +- Exchange hashpartitioning(key#1, 2)", True),
        ("   :  +- *(1) Exchange RoundRobinPartitioning(2)", True),
        ("+- BroadcastExchange HashedRelation\n", False),
        ("Project [key#1 AS Exchange #2]\n+- Filter (Exchange = 1)", False),
    ],
)
def test_a_shuffle_is_an_operator_of_the_plan_and_a_broadcast_is_none(plan, shuffles):
    assert bool(SHUFFLE.search(plan)) is shuffles


# ---- with one


POOL = '<pool name="streams"><schedulingMode>FAIR</schedulingMode><weight>100</weight><minShare>3</minShare></pool>'


@pytest.fixture(scope="module")
def spark(tmp_path_factory):
    """Under FAIR, with a pool that has a share of its own: what is said to protect a query."""
    pools = tmp_path_factory.mktemp("pools") / "pools.xml"
    pools.write_text(f"<allocations>{POOL}</allocations>")
    fair = {"spark.scheduler.mode": "FAIR", "spark.scheduler.allocation.file": f"file:{pools}"}
    yield start_spark(SLOTS, **fair)
    stop_spark()


@pytest.fixture
def said(spark, kafka, capsys):
    """What is printed when a query starts; it is stopped again at once."""

    def said(query, trigger, partitions: int) -> str:
        capsys.readouterr()
        with running(spark, kafka, Setup("tried", query, trigger, partitions=partitions)):
            return capsys.readouterr().out

    return said


@pytest.mark.engine
def test_more_partitions_than_slots_get_a_warning_where_spark_is_silent(spark, said):
    assert said(forward(spark, TUNED), REAL, SLOTS + 2) == WARNING.format(6, 4, 2)


@pytest.mark.engine
def test_enough_slots_or_micro_batch_get_none(spark, said):
    assert said(forward(spark, TUNED), REAL, SLOTS) == ""
    assert said(forward(spark, TUNED), MICRO, SLOTS + 2) == ""


@pytest.mark.engine
def test_with_a_shuffle_spark_refuses_and_nobody_warns(spark, kafka, capsys):
    setup = Setup("tried", count_per_key(spark, TUNED), REAL, partitions=SLOTS + 2)
    with running(spark, kafka, setup) as (_, query):
        assert refusal.wait(spark, query).condition == "CONCURRENT_SCHEDULER_INSUFFICIENT_SLOT"
    assert capsys.readouterr().out == ""


@pytest.mark.engine
def test_a_broadcast_is_no_shuffle_and_each_source_of_a_union_counts(spark, said):
    names = spark.range(3).select(F.col("id").cast("string").cast("binary").alias("key"))
    joined = kafka_to_kafka(spark, lambda events: events.join(F.broadcast(names), "key").select("key", "value"))
    assert said(joined, REAL, SLOTS + 1) == WARNING.format(5, 4, 1)
    twice = kafka_to_kafka(spark, lambda events: events.union(events).select("key", "value"))
    assert said(twice, REAL, 3) == WARNING.format(6, 4, 2)


@pytest.mark.engine
def test_slots_that_another_query_holds_are_not_free(spark, kafka, said):
    with running(spark, kafka, Setup("first", count_per_key(spark, TUNED), REAL)) as (_, query):
        assert not refusal.wait(spark, query), "3 of 4 slots"
        assert said(forward(spark, TUNED), REAL, 1) == ""
        assert said(forward(spark, TUNED), REAL, 2) == WARNING.format(2, 1, 1)


@pytest.mark.engine
@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (["spark.speculation"], "Speculative execution is not supported"),
        (["spark.dynamicAllocation.enabled", "spark.dynamicAllocation.testing"], "Dynamic allocation is not supported"),
    ],
)
def test_neither_speculation_nor_dynamic_allocation_goes_with_a_shuffle(spark, kafka, settings, sentence):
    """`testing` makes a local master take dynamic allocation seriously; on a cluster it is not needed."""
    conf = spark.sparkContext._jsc.sc().conf()
    for name in settings:
        conf.set(name, "true")
    try:
        setup = Setup("tried", count_per_key(spark, TUNED), REAL)
        with pytest.raises(LabError, match=sentence), running(spark, kafka, setup) as (_, query):
            refusal.wait(spark, query)
    finally:
        for name in settings:
            conf.remove(name)


@pytest.mark.engine
def test_a_fair_pool_with_a_share_of_its_own_does_not_protect_a_query(spark, kafka):
    """Lesson 02 says so. If this fails, Spark has learnt something: tell the learners."""
    context = spark.sparkContext

    def job() -> None:
        context.setLocalProperty("spark.scheduler.pool", "default")
        spark.range(0, 8, 1, 8).selectExpr("reflect('java.lang.Thread', 'sleep', 2000L)").collect()

    context.setLocalProperty("spark.scheduler.pool", "streams")
    try:
        setup = Setup("beside", count_per_key(spark, TUNED), {"realTime": "5 seconds"})
        assert beside(spark, kafka, setup, job).ended.condition == "CONCURRENT_SCHEDULER_INSUFFICIENT_SLOT"
    finally:
        context.setLocalProperty("spark.scheduler.pool", None)
