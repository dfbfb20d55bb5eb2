"""The probe in trouble: whatever dies, lags or makes no sense, there is a sentence and nothing is left running."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace

import psutil
import pytest
from confluent_kafka import Producer
from conftest import eventually, gone
from kafka.admin import ConfigResource, ConfigResourceType

from helpers.commands.report import about
from helpers.engines.kafka import QUIET, Kafka, start_kafka
from helpers.errors import LabError
from helpers.ruler.experiment import measure_ruler
from helpers.ruler.load import Load
from helpers.ruler.probe import Probe
from helpers.ruler.watch import Watch
from helpers.settings import ROOT

pytestmark = pytest.mark.engine

SHORT = Load(rate=200, seconds=2, warmup=1, patience=60)
LONG = replace(SHORT, seconds=300)  # to be ended in the middle
SPARKS = {"collector": "ParallelGC", "heap_mib": 2_048, "checkpoint_manager": "some", "slots": 4}  # what a ruler lacks


class InTheMiddle(Watch):
    """Does something once, when the measurement is under way."""

    def __init__(self, what: Callable[[Probe], None]) -> None:
        self._what, self.done = what, False

    def look(self, probe: Probe) -> None:
        if probe.status["phase"] == "measuring" and not self.done:
            self.done = True
            self._what(probe)


def probes() -> list[int]:
    """Probe processes of ours that run."""
    return [child.pid for child in psutil.Process().children() if "helpers.ruler.probe_process" in _words(child)]


def _words(process: psutil.Process) -> list[str]:
    return process.cmdline() if psutil.pid_exists(process.pid) else []


@pytest.fixture(autouse=True)
def no_stack_and_no_probe_is_left(monkeypatch, capfd):
    """However a test here ends: no stack on the screen, not even of a thread, and no probe."""
    of_threads: list = []
    monkeypatch.setattr(threading, "excepthook", of_threads.append)
    yield
    assert of_threads == []
    assert "Traceback" not in "".join(capfd.readouterr())
    assert probes() == []


# ---- something dies


def test_a_broker_that_dies_in_the_middle_of_a_run_gets_a_sentence(kafka):
    kill = InTheMiddle(lambda _: os.killpg(kafka.broker.pid, signal.SIGKILL))
    try:
        with pytest.raises(LabError, match="The broker has taken no event for 3 s: does it still run"):
            measure_ruler(kafka, replace(LONG, patience=3), watch=kill)
    finally:
        assert kafka.restart() > 0, "the other tests need it"


def test_a_probe_that_is_killed_in_the_middle_of_a_run_gets_a_sentence(kafka):
    kill = InTheMiddle(lambda probe: os.kill(probe._process.pid, signal.SIGKILL))
    with pytest.raises(LabError, match=r"ended without a result \(exit code -9\): measure again"):
        measure_ruler(kafka, LONG, watch=kill)


def test_the_probe_ends_with_its_parent(kafka):
    topic = kafka.create_topic("orphan", append_time=True)
    code = (
        "import time; from helpers.ruler.load import Load; from helpers.ruler.probe import Probe\n"
        f"p = Probe({kafka.bootstrap!r}, {topic!r}, {topic!r}, Load(rate=100, seconds=300))\n"
        "while p.status['phase'] == 'starting': time.sleep(0.1)\n"
        "print(p._process.pid, flush=True); time.sleep(300)"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    pid = int(parent.stdout.readline())
    assert not gone(pid, 0)
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    assert gone(pid)


# ---- something cannot be done


def test_a_load_that_this_machine_cannot_send_gets_a_sentence(kafka):
    flood = Load(rate=20_000, payload=20_000, seconds=60, warmup=0, patience=4)
    with pytest.raises(LabError, match=r"behind its schedule: this machine cannot send 20,000 .* Choose a lower rate"):
        measure_ruler(kafka, flood, watch=Watch())


def test_a_broker_that_cannot_be_reached_gets_a_sentence():
    with Probe("127.0.0.1:1", "events", "results", SHORT) as probe:
        assert probe.wait(60)
        with pytest.raises(LabError, match="could not read the results topic"):
            probe.result()


@pytest.mark.parametrize("client", ["confluent-kafka", "kafka-python"])
def test_events_that_the_broker_refuses_are_counted_as_not_sent_and_not_as_lost(kafka, client):
    topic = kafka.create_topic(f"narrow-{client}", append_time=True)
    with Probe(kafka.bootstrap, topic, topic, replace(SHORT, seconds=3, client=client)) as probe:
        assert eventually(lambda: probe.status["phase"] == "measuring", 60)
        too_small = ConfigResource(ConfigResourceType.TOPIC, topic, {"max.message.bytes": "100"})
        with kafka.admin() as admin:
            admin.alter_configs([too_small])
        assert probe.wait(60)
        summary = probe.result()
    assert summary["send_errors"] > 0 and summary["rows"] > 0
    assert summary["lost"] == summary["duplicated"] == 0
    assert summary["rows"] + summary["send_errors"] == summary["sent"]


# ---- something makes no sense


@pytest.mark.parametrize("row", [b'{"total": 5}', b"no JSON at all", b""], ids=["no id", "no JSON", "nothing"])
def test_a_result_that_belongs_to_no_event_gets_a_sentence(kafka, row):
    name = f"{time.monotonic_ns()}"
    events, results = (kafka.create_topic(f"{kind}-{name}", append_time=True) for kind in ("asked", "answered"))
    producer = Producer({"bootstrap.servers": kafka.bootstrap, **QUIET})
    producer.produce(results, row, b"k1")
    assert producer.flush(30) == 0
    with Probe(kafka.bootstrap, events, results, LONG) as probe:
        assert probe.wait(60), "it does not wait until its patience is over"
        with pytest.raises(LabError, match=r"^A result row has neither `event_id` nor `count`"):
            probe.result()


# ---- a broker of one's own


def test_on_a_broker_of_ones_own_the_clock_is_ours_and_the_report_says_so(kafka, monkeypatch):
    monkeypatch.setenv("LAB_KAFKA", "external")
    monkeypatch.setenv("LAB_KAFKA_BOOTSTRAP", kafka.bootstrap)
    before = topics(kafka)
    with start_kafka() as external:
        assert external.backend == "external"
        external.create_topic("guest")
        trace = measure_ruler(external, SHORT, watch=Watch())
    assert (trace.clock, trace.lost) == ("received", 0)
    assert trace.latency == pytest.approx((trace.samples["received"] - trace.samples["due"]) * 1000)
    assert "to when its result was read (an external broker" in about(replace(trace, meta=trace.meta | SPARKS))
    assert eventually(lambda: topics(kafka) == before, 30), f"it is left as it was found: {topics(kafka) ^ before}"


def topics(kafka: Kafka) -> set[str]:
    with kafka.admin() as admin:
        return set(admin.list_topics())
