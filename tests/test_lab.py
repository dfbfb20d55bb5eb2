"""What every lesson rests on and does not check itself: the lab says what it is, and can always be started again."""

import os
import signal
from contextlib import redirect_stdout
from io import StringIO
from types import SimpleNamespace

import pytest
from conftest import gone
from pyspark.sql import functions as F

from helpers import lab as lab_module
from helpers.commands.queries import TUNED, count_per_key, forward, kafka_to_kafka
from helpers.engines.spark import GONE, jvm_pid
from helpers.errors import LabError
from helpers.evidence import refusal
from helpers.evidence.calibrate import rounds_for
from helpers.evidence.keys import by_task, task_of_keys
from helpers.lab import Lab, start_lab
from helpers.ruler.experiment import Setup, running
from helpers.ruler.provenance import FORMAT, commit
from helpers.ruler.watch import Watch

REAL = {"realTime": "1 minute"}
SHORT = {"rate": 200, "seconds": 2, "warmup": 1}
SEES_AT_ONCE = {"spark.ui.liveUpdate.period": "0"}  # else news of an idle query waits for a heartbeat, up to 10 s
LONG = SHORT | {"seconds": 300}  # to be ended in the middle


# ---- without an engine


@pytest.mark.parametrize("broken", [(), ("close",), ("stop_spark",), ("close", "stop_spark", "stop")])
def test_what_cannot_be_stopped_keeps_nothing_else_from_being_stopped_and_is_said(monkeypatch, capsys, broken):
    stopped = []

    def stop(name: str):
        def stopping() -> None:
            stopped.append(name)
            if name in broken:
                raise OSError(f"{name} is broken")

        return stopping

    monkeypatch.setattr(lab_module, "stop_spark", stop("stop_spark"))
    lab = Lab.__new__(Lab)
    lab._pipeline = None
    lab._understudy, lab.kafka = SimpleNamespace(close=stop("close")), SimpleNamespace(stop=stop("stop"))
    lab.stop()
    assert stopped == ["close", "stop_spark", "stop"]
    note, *_ = said = capsys.readouterr().out.splitlines()
    assert said[-1] == "Stopped: Spark and Kafka."
    assert len(said) == 1 + bool(broken)
    assert all(f"{name} is broken" in note for name in broken)


# ---- with one: the tests share a lab, and each leaves one that works


@pytest.fixture(scope="module")
def started():
    """What `start_lab` printed, and the lab: with another master than it would choose."""
    said = StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(said):
        patch.setenv("LAB_KAFKA", "embedded")
        patch.setenv("LAB_SPARK_MASTER", "local[3]")
        started = SimpleNamespace(lab=start_lab(slots=4, **SEES_AT_ONCE), said=said)
        yield started
        started.lab.end()


@pytest.fixture
def lab(started) -> Lab:
    return started.lab


@pytest.fixture(scope="module")
def counts(started):
    """A running count per key: 1 task reads, 2 count, and that takes all 3 slots."""
    return count_per_key(started.lab.spark, TUNED)


@pytest.fixture(scope="module")
def trace(started, counts):
    return started.lab.measure("real-time", counts, REAL, watch=Watch(), **SHORT)


class InTheMiddle(Watch):
    """Kills a process when the measurement is under way."""

    def __init__(self, pid: int) -> None:
        self._pid = pid

    def look(self, probe) -> None:
        if probe.status["phase"] == "measuring":
            os.kill(self._pid, signal.SIGKILL)


@pytest.mark.engine
def test_it_says_how_many_slots_there_really_are(started):
    assert started.said.getvalue().splitlines() == ["Ready: a Kafka broker, and Spark with 3 slots."]
    assert started.lab.slots == 3


@pytest.mark.engine
def test_a_run_knows_all_that_its_figures_depend_on(trace):
    meta = trace.meta
    assert (meta["format"], meta["commit"]) == (FORMAT, commit())
    assert (meta["backend"], meta["clock"], meta["slots"], meta["trigger"]) == ("embedded", "appended", 3, REAL)
    assert "PS MarkSweep" in meta["collector"] and 1_000 < meta["heap_mib"] <= 2_048
    assert meta["checkpoint_manager"].endswith("CheckpointFileManager")
    assert meta["versions"]["pyspark"] and meta["java"] and meta["machine"] and meta["python"]


@pytest.mark.engine
def test_every_event_of_a_count_per_key_is_timed(trace):
    assert (trace.lost, trace.duplicated) == (0, 0)
    assert len(trace.samples) == pytest.approx(SHORT["rate"] * SHORT["seconds"], abs=1)


@pytest.mark.engine
def test_a_run_knows_what_it_cost(trace):
    cost = trace.rounds[0]["cost"]
    assert cost["cores"] > 0 and cost["packets"] > 0


@pytest.mark.engine
def test_events_are_split_by_the_task_that_spark_sends_their_key_to(lab, trace):
    key = F.concat(F.lit("k"), F.col("id").cast("string")).cast("binary").alias("key")
    sent = lab.spark.range(50).select("id", key).repartition(3, "key").select("id", F.spark_partition_id())
    tasks = task_of_keys(lab.spark, 50, 3)
    assert {number: task for number, task in sent.collect()} == dict(enumerate(tasks))
    parts = by_task(trace, lab.spark, 3)
    sizes = [len(part.samples) for part in parts.values()]
    assert sizes == sorted(sizes, reverse=True) and sum(sizes) == len(trace.samples) and min(sizes) > 0


@pytest.mark.engine
def test_work_is_calibrated_and_a_hundred_times_the_time_is_many_times_the_rounds(lab):
    def hashes(rounds):
        return F.expr(f"aggregate(sequence(1, {rounds}), last, (text, i) -> sha2(text, 256))")

    one, many = (rounds_for(lab.spark, hashes, ms) for ms in (1, 100))
    assert 10 * one < many, "roughly proportional, even on a busy machine"


@pytest.mark.engine
def test_a_stopped_query_has_given_its_slots_back_for_the_next_one_counts_them_at_once(lab, counts):
    for _ in range(2):
        with running(lab.spark, lab.kafka, Setup("real-time", counts, REAL)) as (_, query):
            assert not refusal.wait(lab.spark, query), "all slots are free"
        executors = lab.spark.sparkContext._jsc.sc().statusTracker().getExecutorInfos()
        assert [one.numRunningTasks() for one in executors] == [0]


@pytest.mark.engine
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
        left = {name for name in admin.list_topics() if name.startswith(("events-", "results-"))}
    assert left <= set(lab.kafka._retired), "a results topic is kept for a while, nothing else"
    assert not [name for name in left if name.startswith("events-")]


@pytest.mark.engine
def test_a_setting_reaches_the_running_spark(lab):
    name = "spark.shuffle.streaming.networkBufferMaxWaitTimeMs"
    lab.set(name, 7)
    assert lab.spark.sparkContext._jsc.sc().conf().get(name) == "7"


@pytest.mark.engine
def test_after_a_query_that_failed_the_next_one_is_measured(lab, trace):
    failing = kafka_to_kafka(lab.spark, lambda events: events.select("key", F.raise_error(F.lit("oh")).alias("value")))
    with pytest.raises(LabError, match="Spark stopped the query"):
        lab.measure("failing", failing, REAL, watch=Watch(), **SHORT)
    assert lab.spark.streams.active == []
    again = lab.measure("real-time", forward(lab.spark, TUNED), REAL, watch=Watch(), **SHORT)
    assert again.lost == 0 and len(again.samples) == pytest.approx(len(trace.samples), abs=2)


@pytest.mark.engine
def test_after_sparks_process_was_killed_a_sentence_says_so_and_a_new_lab_measures(started):
    dead, pid = started.lab, jvm_pid()
    with pytest.raises(LabError) as caught:
        dead.measure("killed", forward(dead.spark, TUNED), REAL, watch=InTheMiddle(pid), **LONG)
    assert str(caught.value) == GONE
    broker = dead.kafka.broker.pid
    started.lab = lab = start_lab()
    assert jvm_pid() != pid and gone(broker)
    assert lab.measure("real-time", forward(lab.spark, TUNED), REAL, watch=Watch(), **SHORT).lost == 0


@pytest.mark.engine
def test_after_the_broker_was_killed_a_new_lab_measures(started):
    pids = [started.lab.kafka.broker.pid, jvm_pid()]
    os.kill(pids[0], signal.SIGKILL)
    started.lab = lab = start_lab()
    assert all(gone(pid) for pid in pids)
    assert lab.measure("real-time", forward(lab.spark, TUNED), REAL, watch=Watch(), **SHORT).lost == 0
