"""Faults that are planted while a run goes on: they strike, their evidence is in the run, and nothing is left."""

import os
import resource
import signal
import time
from types import SimpleNamespace

import psutil
import pytest
from conftest import eventually
from pyspark.sql import functions as F

from helpers.commands.queries import LINGER, TUNED, count_per_key, forward, kafka_to_kafka
from helpers.engines.machine import core_count
from helpers.engines.spark import jvm_pid
from helpers.errors import LabError
from helpers.evidence import sink, suspects
from helpers.faults import planted
from helpers.lab import start_lab
from helpers.ruler.experiment import measure_ruler
from helpers.ruler.load import TIMES, Load
from helpers.ruler.watch import Watch

REAL = {"realTime": "1 minute"}
CALM = {"rate": 200, "seconds": 3, "warmup": 2, "linger_ms": 0}


# ---- without an engine


def test_a_fault_after_the_measured_time_gets_a_sentence():
    with pytest.raises(LabError, match="A fault at 9 s: only 6 s are measured"):
        planted.Planted(Watch(), {9: print}).begin("real-time", Load(seconds=6))


def test_a_fault_strikes_at_its_second_and_not_before():
    struck = []
    watch = planted.Planted(Watch(), {0.3: lambda: struck.append(time.time())})
    watch.begin("real-time", Load(seconds=6))
    watch.look(SimpleNamespace(status={"measure_from": None}))
    begun = time.time()
    watch.look(SimpleNamespace(status={"measure_from": begun}))
    assert eventually(lambda: bool(struck), 5)
    assert struck[0] - begun >= 0.3
    watch.end(None)


def test_a_run_that_is_made_again_has_its_faults_again():
    struck = []
    watch = planted.Planted(Watch(), {0: lambda: struck.append(1)})
    for attempt in (1, 2):
        watch.begin("real-time", Load(seconds=6))
        watch.look(SimpleNamespace(status={"measure_from": time.time()}))
        assert eventually(lambda: len(struck) == attempt, 5)  # noqa: B023
        watch.end(None)


def test_a_run_without_its_fault_is_no_run():
    def broken() -> None:
        raise OSError("no such process")

    watch = planted.Planted(Watch(), {0: broken})
    watch.begin("real-time", Load(seconds=6))
    watch.look(SimpleNamespace(status={"measure_from": time.time()}))
    with pytest.raises(LabError, match="could not be planted, so this run shows nothing: no such process"):
        watch.end(SimpleNamespace())


def test_a_noisy_neighbour_is_loud_and_then_gone():
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    planted.noisy_neighbour(0.3)()
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before > 0.2 * core_count()
    assert not [child for child in psutil.Process().children() if planted.BUSY in child.cmdline()]


# ---- with one


@pytest.fixture(scope="module")
def lab():
    lab = start_lab(slots=3)
    yield lab
    lab.end()


@pytest.fixture(scope="module")
def stalled(lab):
    """Spark stands still for half a second, and each event waits for the result of the one before it.

    40 a second: a cold JVM on a slow machine takes over 10 ms for an answer, and whoever is behind by a second when
    the measured time begins has the stall in his warm-up.
    """
    fault = {1: planted.frozen_spark(0.5)}
    query = forward(lab.spark, TUNED)
    return lab.measure("real-time", query, REAL, Watch(), fault, pacing="answer", **CALM | {"rate": 40})


@pytest.mark.engine
def test_whoever_waits_for_the_answer_hides_a_stall_and_the_schedule_shows_it(stalled):
    sent, due = stalled.seen("sent", "received", "sent"), stalled.seen("due", "received", "due")
    assert 1 <= (sent.latency > 300).sum() <= 3
    assert (due.latency > 300).sum() > 5, "40 a second were due in it, and those of its first 0.2 s waited so long"
    assert stalled.lost == 0 and not stalled.note, "that it was late is its way, not the machine's fault"


@pytest.mark.engine
def test_an_events_times_are_in_the_order_of_its_way(stalled):
    times = [stalled.samples[name] for name in TIMES]
    for name, before, after in zip(TIMES[1:], times, times[1:], strict=False):
        assert (after - before > -0.002).all(), f"{name} is before what comes before it"
    assert set(stalled.samples["partition"]) == {0}


@pytest.mark.engine
def test_a_full_collection_of_a_full_heap_is_found_by_its_evidence_and_not_where_there_was_none(lab):
    query = count_per_key(lab.spark, TUNED, LINGER)
    with planted.live_objects(lab.spark):
        sick = lab.measure("real-time", query, REAL, Watch(), {1: planted.full_collection(lab.spark)}, **CALM)
    well = lab.measure("real-time", query, REAL, Watch(), **CALM)

    def asked_for(run) -> list[str]:
        return [str(one) for one in suspects.happenings(run) if "SystemGC" in one.words]

    assert len(asked_for(sick)) == 1 and asked_for(well) == []
    assert suspects.blame(sick, 30)["Spark's collector"] > 3


@pytest.mark.engine
def test_a_harness_that_sleeps_between_sends_does_not_keep_its_rate(kafka):
    load = Load(rate=2_000, seconds=1, warmup=0.2, pacing="sleep")
    sent = measure_ruler(kafka, load, watch=Watch()).samples["sent"]
    assert (len(sent) - 1) / (sent.max() - sent.min()) < 1_900


@pytest.mark.engine
def test_a_sink_that_lingers_makes_fewer_requests(lab):
    asked = []
    for linger in ({}, {"kafka.linger.ms": "50"}):
        watch = sink.Requests(lab.spark, Watch())
        run = lab.measure("real-time", forward(lab.spark, TUNED, linger), REAL, watch, **CALM)
        asked.append(run.rounds[0]["sink_requests"])
    assert asked[0] > 100 and asked[1] < asked[0] / 2
    assert 150 < run.rounds[0]["producer_requests"] < 250, "a request for each of 200 events a second"


@pytest.mark.engine
def test_what_a_query_wrote_can_be_read_row_by_row(lab):
    def stamped(events):
        value = F.to_json(F.struct(F.get_json_object(F.col("value").cast("string"), "$.event_id").alias("event_id")))
        return events.select("key", value.alias("value"))

    rows = lab.rows("real-time", kafka_to_kafka(lab.spark, stamped, TUNED), REAL, **CALM)
    assert len({row["event_id"] for row in rows}) == len(rows) > 600
    assert all(abs(row["appended_ms"] / 1000 - time.time()) < 60 for row in rows)


@pytest.mark.engine
def test_another_collector_is_another_spark_on_the_same_broker(lab):
    before, bootstrap = jvm_pid(), lab.kafka.bootstrap
    spark = lab.restart(collector="ZGC")
    assert spark is lab.spark and jvm_pid() != before and lab.kafka.bootstrap == bootstrap
    run = lab.measure("real-time", forward(spark, TUNED), REAL, Watch(), **CALM)
    assert "ZGC" in run.meta["collector"] and run.lost == 0


@pytest.mark.engine
def test_the_brokers_jvm_says_when_it_stood_still(each_kafka):
    began = time.time()
    measure_ruler(each_kafka, Load(rate=200, seconds=2, warmup=1), watch=Watch())
    stops = each_kafka.stops(began - 60, time.time())
    assert stops and all(began - 60 <= stop.begin <= time.time() for stop in stops)


@pytest.mark.engine
def test_a_spark_that_is_stopped_for_good_is_ended_all_the_same(lab):
    pid = jvm_pid()
    os.kill(pid, signal.SIGSTOP)
    lab.end()
    assert not psutil.pid_exists(pid)
