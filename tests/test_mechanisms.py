"""What lessons 02 and 03 show, asked of the real engine: stages, slots, shuffle files, refusals, costs."""

import pytest
from pyspark.sql import functions as F

from helpers.commands.queries import TUNED, count_per_key, kafka_to_kafka
from helpers.evidence import refusal, stages
from helpers.evidence.calibrate import rounds_for
from helpers.evidence.keys import by_task, task_of_keys
from helpers.evidence.shuffle_files import LiveFiles
from helpers.lab import start_lab
from helpers.ruler.experiment import Setup, running

pytestmark = pytest.mark.engine

MICRO, REAL = {"processingTime": "0 seconds"}, {"realTime": "1 minute"}
SHORT = {"rate": 200, "seconds": 4, "warmup": 3}


@pytest.fixture(scope="module")
def lab():
    running = start_lab(slots=4)
    yield running
    running.end()


@pytest.fixture(scope="module")
def counts(lab):
    return count_per_key(lab.spark, TUNED)


@pytest.fixture(scope="module")
def runs(lab, counts) -> dict:
    """Both modes, measured once: the trace, the timeline, and the shuffle files that it wrote."""
    files, found = LiveFiles(lab.spark), {}
    for name, trigger in (("micro-batch", MICRO), ("real-time", REAL)):
        before = stages.newest(lab.spark)
        trace = lab.measure(name, counts, trigger, watch=files, **SHORT)
        found[name] = trace, stages.read(lab.spark, name, before), files.written[name]
    return found


def test_stages_take_turns_under_micro_batch_and_run_together_under_real_time_mode(runs):
    (_, in_turn, _), (_, together, _) = runs.values()
    assert in_turn.stages_at_once() == 1 and len(in_turn.stages) >= 4
    assert together.stages_at_once() == 2 and len(together.stages) == 2
    assert together.slots_at_once() == len(together.tasks) == 3
    assert {stage.role for stage in in_turn.stages} == {0, 1}
    assert sum(task.shuffle_written for task in in_turn.tasks) > 0
    assert in_turn.slots == 4


def test_a_micro_batch_shuffle_writes_files_and_a_streaming_one_none(runs):
    (_, _, on_disk), (_, _, streamed) = runs.values()
    assert len(on_disk) > 0 and sum(on_disk.values()) > 0
    assert streamed == {}


def test_micro_batch_writes_a_row_per_key_and_batch_and_real_time_mode_one_per_event(runs):
    (micro, _, _), (real, _, _) = runs.values()
    assert micro.lost == real.lost == 0
    assert real.total("rows") == real.total("sent")
    assert micro.total("rows") < micro.total("sent")


def test_a_run_knows_what_it_cost(runs):
    for trace, _, _ in runs.values():
        cost = trace.rounds[0]["cost"]
        assert 0 < cost["cores"] < 64 and cost["packets"] > 0


def test_one_slot_too_few_is_refused_and_enough_runs_and_nothing_keeps_running(lab, counts):
    refused = lab.refusal(counts, REAL, partitions=3)
    assert refused.condition == "CONCURRENT_SCHEDULER_INSUFFICIENT_SLOT"
    assert "needs 5 " in refused.text and "only 4 " in refused.text
    assert lab.refusal(counts, REAL, partitions=2) is None
    assert lab.spark.streams.active == []
    with lab.kafka.admin() as admin:
        assert not [name for name in admin.list_topics() if name.startswith(("events-", "results-"))]


def test_a_stopped_query_has_given_its_slots_back_for_the_next_one_counts_them_at_once(lab, counts):
    for _ in range(3):
        with running(lab.spark, lab.kafka, Setup("real-time", counts, REAL)) as (_, query):
            assert refusal.wait(lab.spark, query) is None
        executors = lab.spark.sparkContext._jsc.sc().statusTracker().getExecutorInfos()
        assert [one.numRunningTasks() for one in executors] == [0]


def test_a_blocking_operator_is_refused(lab):
    def by_range(events):
        return events.repartitionByRange(2, "key").select("key", "value")

    def by_python(events):
        return events.select("key", F.udf(bytes.decode, useArrow=False)("value").alias("value"))

    for blocking in (by_range, by_python):
        refused = lab.refusal(kafka_to_kafka(lab.spark, blocking), REAL)
        assert refused.condition == "STREAMING_REAL_TIME_MODE.OPERATOR_OR_SINK_NOT_IN_ALLOWLIST"


def test_a_trigger_that_spark_rejects_at_once_is_a_refusal_too(lab, counts):
    refused = lab.refusal(counts, {"realTime": "1 second"})
    assert refused.condition == "INVALID_STREAMING_REAL_TIME_MODE_TRIGGER_INTERVAL"


def test_an_idle_real_time_query_holds_its_slots_and_an_idle_micro_batch_none(lab, counts):
    assert lab.idle(counts, REAL, seconds=3)["slots"] == 3
    assert lab.idle(counts, MICRO, seconds=3)["slots"] == 0


def test_events_are_split_by_the_task_that_spark_sends_their_key_to(lab, runs):
    key = F.concat(F.lit("k"), F.col("id").cast("string")).cast("binary").alias("key")
    sent = lab.spark.range(50).select("id", key).repartition(3, "key").select("id", F.spark_partition_id())
    tasks = task_of_keys(lab.spark, 50, 3)
    assert {number: task for number, task in sent.collect()} == dict(enumerate(tasks))
    trace = runs["real-time"][0]
    parts = by_task(trace, lab.spark, 3)
    sizes = [len(part.samples) for part in parts.values()]
    assert sizes == sorted(sizes, reverse=True) and sum(sizes) == len(trace.samples) and min(sizes) > 0


def test_work_is_calibrated_and_twice_the_time_is_twice_the_rounds(lab):
    def hashes(rounds):
        return F.expr(f"aggregate(sequence(1, {rounds}), last, (text, i) -> sha2(text, 256))")

    one, many = (rounds_for(lab.spark, hashes, ms) for ms in (1, 100))
    assert 10 * one < many, "roughly proportional, even on a busy machine"
