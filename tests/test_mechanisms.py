"""What lessons 02 and 03 rest on and do not check themselves: refusals, slots given back, keys, costs, calibration."""

import pytest
from pyspark.sql import functions as F

from helpers.commands.queries import TUNED, count_per_key
from helpers.evidence import refusal
from helpers.evidence.calibrate import rounds_for
from helpers.evidence.keys import by_task, task_of_keys
from helpers.lab import start_lab
from helpers.ruler.experiment import Setup, running
from helpers.ruler.watch import Watch

pytestmark = pytest.mark.engine

REAL = {"realTime": "1 minute"}


@pytest.fixture(scope="module")
def lab():
    running = start_lab(slots=4)
    yield running
    running.end()


@pytest.fixture(scope="module")
def counts(lab):
    return count_per_key(lab.spark, TUNED)


@pytest.fixture(scope="module")
def trace(lab, counts):
    return lab.measure("real-time", counts, REAL, watch=Watch(), rate=200, seconds=3, warmup=2)


def test_every_event_of_a_count_per_key_is_timed(trace):
    assert (trace.lost, trace.duplicated) == (0, 0)
    assert len(trace.samples) == pytest.approx(200 * 3, abs=1)


def test_a_run_knows_what_it_cost(trace):
    cost = trace.rounds[0]["cost"]
    assert cost["cores"] > 0 and cost["packets"] > 0


def test_events_are_split_by_the_task_that_spark_sends_their_key_to(lab, trace):
    key = F.concat(F.lit("k"), F.col("id").cast("string")).cast("binary").alias("key")
    sent = lab.spark.range(50).select("id", key).repartition(3, "key").select("id", F.spark_partition_id())
    tasks = task_of_keys(lab.spark, 50, 3)
    assert {number: task for number, task in sent.collect()} == dict(enumerate(tasks))
    parts = by_task(trace, lab.spark, 3)
    sizes = [len(part.samples) for part in parts.values()]
    assert sizes == sorted(sizes, reverse=True) and sum(sizes) == len(trace.samples) and min(sizes) > 0


def test_a_stopped_query_has_given_its_slots_back_for_the_next_one_counts_them_at_once(lab, counts):
    for _ in range(3):
        with running(lab.spark, lab.kafka, Setup("real-time", counts, REAL)) as (_, query):
            assert not refusal.wait(lab.spark, query)
        executors = lab.spark.sparkContext._jsc.sc().statusTracker().getExecutorInfos()
        assert [one.numRunningTasks() for one in executors] == [0]


@pytest.mark.parametrize(
    ("trigger", "partitions", "condition"),
    [
        ({"realTime": "1 second"}, 1, "INVALID_STREAMING_REAL_TIME_MODE_TRIGGER_INTERVAL"),
        (REAL, 3, "CONCURRENT_SCHEDULER_INSUFFICIENT_SLOT"),
    ],
    ids=["at once", "when its tasks should start"],
)
def test_whenever_spark_refuses_it_is_a_refusal_and_nothing_is_left(lab, counts, trigger, partitions, condition):
    assert lab.refusal(counts, trigger, partitions).condition == condition
    assert lab.spark.streams.active == []
    with lab.kafka.admin() as admin:
        assert not [name for name in admin.list_topics() if name.startswith(("events-", "results-"))]


def test_work_is_calibrated_and_a_hundred_times_the_time_is_many_times_the_rounds(lab):
    def hashes(rounds):
        return F.expr(f"aggregate(sequence(1, {rounds}), last, (text, i) -> sha2(text, 256))")

    one, many = (rounds_for(lab.spark, hashes, ms) for ms in (1, 100))
    assert 10 * one < many, "roughly proportional, even on a busy machine"
