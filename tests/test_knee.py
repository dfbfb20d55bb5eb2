"""How much a query can take: working off a backlog, state that is there before, lag by Kafka's offsets, sizing."""

import time
from types import SimpleNamespace

import numpy as np
import pytest
from pyspark.sql import functions as F

from helpers.commands.knee import knee_of
from helpers.commands.queries import EVENT, TUNED, forward, kafka_to_kafka
from helpers.errors import LabError
from helpers.evidence import sizing
from helpers.evidence.lag import Lag
from helpers.faults.planted import frozen_spark
from helpers.lab import start_lab
from helpers.ruler.bulk import Drained, drain, fill
from helpers.ruler.load import SAMPLE
from helpers.ruler.trace import Trace
from helpers.ruler.watch import Watch

REAL = {"realTime": "1 minute"}
CALM = {"rate": 200, "seconds": 3, "warmup": 2, "linger_ms": 0}

# ---- without an engine


def test_a_drains_rate_is_that_of_its_middle():
    at = np.array([0, 5, 6, 7, 8, 9, 20.0])  # a slow start and slow last rows
    rows = np.array([0, 0, 250, 500, 750, 1_000, 1_001])
    done = Drained("real-time", at, rows, cpu=at / 2)
    assert done.events_per_second == pytest.approx(250, rel=0.01)
    assert done.cpu_per_million == pytest.approx(1e6 / 250 / 2, rel=0.01)


def run_of(growth: float, cores: float = 0.5, begin: float = 0.0) -> Trace:
    """10 s at 1,000 events a second that wait this much longer with every second: data to judge, no measurement."""
    samples = np.zeros(10_000, SAMPLE)
    elapsed = np.arange(10_000) / 1_000
    samples["due"] = begin + elapsed
    samples["appended"] = begin + elapsed * (1 + growth) + 0.005
    lap = {"measure_from": begin, "measure_to": begin + 10.0, "cost": {"cores": cores}}
    return Trace("real-time", samples, {"rounds": [lap], "load": {"rate": 1_000}})


def test_the_knee_is_the_last_load_before_the_first_that_was_not_kept_up_with():
    steady, behind = run_of(0), run_of(0.3)
    assert knee_of({0.5: steady, 0.9: steady, 1.1: behind, 1.4: behind}) == 0.9
    assert knee_of({0.5: steady, 0.9: behind, 1.1: steady}) == 0.5, "a lucky run beyond it does not count"
    assert knee_of({0.5: behind}) == 0


def test_beyond_the_knee_what_was_done_counts_and_not_what_was_offered():
    kept_up, behind = run_of(0), run_of(0.3)
    assert (kept_up.throughput, kept_up.cpu_per_million) == (1_000, pytest.approx(500))
    assert behind.throughput == pytest.approx(1_000 / 1.3, rel=0.001)
    assert behind.cpu_per_million == pytest.approx(500 * 1.3, rel=0.001)
    assert Trace.join([behind, run_of(0.3, begin=60)]).throughput == pytest.approx(behind.throughput)


def test_catching_up_counts_from_the_last_event_to_the_last_result():
    assert run_of(0).catch_up == pytest.approx(0.005)
    behind = run_of(0.3)
    assert behind.catch_up == pytest.approx(0.3 * 9.999 + 0.005)
    assert Trace.join([behind, run_of(0, begin=60)]).catch_up == pytest.approx(behind.catch_up), "of the worst round"


@pytest.mark.parametrize(
    ("plan", "slots", "executors"),
    [(sizing.plan(8, [20, 20]), 48, 12), (sizing.plan(1), 1, 1), (sizing.plan(20, [16], cores_per_executor=8), 36, 5)],
)
def test_a_plan_has_a_slot_for_every_task(plan, slots, executors):
    assert (plan.slots, plan.executors) == (slots, executors)


def test_with_too_few_slots_a_plan_says_what_spark_does():
    assert sizing.plan(3, [4]).with_only(6) == "refused: 1 of 7 slots are missing"
    assert sizing.plan(8).with_only(6) == "runs, and silently never reads 2 of 8 partitions"
    assert sizing.plan(2, [2]).with_only(6) == "runs, and leaves 2 of 6 slots to others"


def test_a_plan_for_a_rate_leaves_room():
    assert "20 source tasks: 8 partitions are too few" in str(sizing.plan(8, rate=60_000, per_task=4_400))
    assert "are enough" in str(sizing.plan(20, rate=60_000, per_task=4_400))


@pytest.mark.parametrize(
    "wrong", [{"partitions": 0}, {"shuffles": [0]}, {"rate": 5}, {"per_task": 5}, {"rate": 5, "per_task": 0}]
)
def test_a_plan_that_makes_no_sense_gets_a_sentence(wrong):
    with pytest.raises(LabError):
        sizing.plan(**{"partitions": 2} | wrong)


# ---- with one


@pytest.fixture(scope="module")
def lab():
    lab = start_lab(slots=3)
    yield lab
    lab.end()


def newest(events):
    event_id = F.from_json(F.col("value").cast("string"), EVENT)["event_id"]
    last = events.select("key", event_id.alias("event_id")).groupBy("key").agg(F.last("event_id").alias("event_id"))
    return last.select("key", F.to_json(F.struct("event_id")).alias("value"))


@pytest.mark.engine
def test_a_query_works_off_what_waits_and_that_has_its_price(lab):
    done = lab.how_fast("real-time", forward(lab.spark, TUNED), REAL, events=20_000)
    assert done.rows[-1] == 20_000
    assert done.events_per_second > 0 and done.cpu_per_million > 0


@pytest.mark.engine
def test_state_that_is_there_before_is_not_measured(lab):
    query = kafka_to_kafka(lab.spark, newest, TUNED)
    run = lab.measure("real-time", query, {"realTime": "5 seconds"}, Watch(), keys=2_000, fill=2_000, **CALM)
    assert (run.lost, run.duplicated) == (0, 0)
    assert run.total("rows") == run.total("sent"), "the 2,000 are not the probe's"
    assert run.rounds[0]["progress"][-1]["state"][0]["rows"] == 2_000


@pytest.mark.engine
def test_a_backlog_that_nobody_works_off_gets_a_sentence(lab, monkeypatch):
    monkeypatch.setattr("helpers.ruler.bulk.PATIENCE_SECONDS", 0.5)
    topic = lab.kafka.create_topic("nobody-writes-here")
    fill(lab.kafka, topic, 10, keys=2)
    route = SimpleNamespace(results=topic)
    with pytest.raises(LabError, match=r"10 rows of 20 came, and no more for 0\.5 s"):
        drain(lab.kafka, route, 20, lambda: None, "real-time")
    with pytest.raises(LabError, match="it broke"):
        drain(lab.kafka, route, 20, lambda: RuntimeError("it broke"), "real-time")


@pytest.mark.engine
def test_kafkas_offsets_show_a_standstill_while_spark_cannot_answer(lab):
    lag = Lag(lab.kafka, Watch())
    began = time.monotonic()
    run = lab.measure("real-time", lag.of(forward(lab.spark, TUNED)), REAL, lag, {1: frozen_spark(1)}, **CALM)
    assert run.lost == 0 and time.monotonic() - began < 60
    during = [one.lag for one in lag.seen if 1.4 < one.at < 2.0]
    assert len(during) >= 2 and max(during) > 60, "200 a second waited for up to a second"
    assert np.median([one.lag for one in lag.seen]) < 60


@pytest.mark.parametrize("fill", [-1, 3_000_000, 1.5])
def test_a_fill_that_makes_no_sense_gets_a_sentence(fill):
    from helpers.lab import Lab

    with pytest.raises(LabError, match="fill="):
        Lab.setup(SimpleNamespace(load=lambda _: None), "real-time", None, REAL, fill=fill)
