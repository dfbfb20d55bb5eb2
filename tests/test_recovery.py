"""What died, hangs or was taken over in the meantime can be stopped and replaced without a kernel restart."""

import os
import signal
import socket
import warnings

import psutil
import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from conftest import BACKENDS, eventually, gone
from pyspark import SparkContext
from pyspark.sql import SparkSession

from helpers.engines import broker_settings, embedded, janitor, spark
from helpers.engines import kafka as kafka_module
from helpers.engines.embedded import EmbeddedBroker
from helpers.engines.kafka import start_kafka
from helpers.engines.scratch import run_dir
from helpers.engines.spark import GONE, jvm_pid, start_spark, stop_spark
from helpers.errors import LabError

pytestmark = pytest.mark.engine


@pytest.fixture
def session():
    yield start_spark(2)
    stop_spark()


def kill_spark() -> None:
    os.kill(jvm_pid(), signal.SIGKILL)
    SparkContext._gateway.proc.wait(10)


def cluster_id(bootstrap: str) -> str | None:
    return AdminClient({"bootstrap.servers": bootstrap, "log_level": 0}).list_topics(timeout=10).cluster_id


def of_ours(program: str) -> list[int]:
    """Children of this process that run this Java program."""
    return [child.pid for child in psutil.Process().children() if program in " ".join(child.cmdline())]


# ---- Spark


def test_a_killed_spark_is_replaced_in_the_same_process(session):
    session.readStream.format("rate").load().writeStream.format("noop").start()
    kill_spark()
    with pytest.raises(LabError) as caught:
        jvm_pid()
    assert str(caught.value) == GONE
    assert start_spark(3).range(5).count() == 5
    assert SparkContext.getOrCreate().defaultParallelism == 3


def test_a_spark_that_hangs_is_replaced_in_the_same_process(session, monkeypatch):
    monkeypatch.setattr(spark, "STOP_SECONDS", 3)
    hanging = jvm_pid()
    os.kill(hanging, signal.SIGSTOP)
    again = start_spark(2)
    assert gone(hanging)
    assert again.range(5).count() == 5
    assert SparkSession.getActiveSession() is again


def test_a_dead_spark_is_stopped_without_a_word_and_nothing_of_it_is_kept(session, capfd):
    kill_spark()
    with warnings.catch_warnings(action="error"):
        stop_spark()
        stop_spark()
    assert capfd.readouterr() == ("", "")
    kept = [SparkContext._gateway, SparkContext._jvm, SparkContext._active_spark_context]
    assert kept == [None] * 3
    assert SparkSession._instantiatedSession is None
    assert SparkSession._activeSession is None


# ---- the embedded broker


def test_another_kafka_on_its_port_is_not_taken_for_the_broker(kafka, monkeypatch):
    """Between choosing a port and binding it somebody else may take it: here a Kafka that would answer."""
    taken, free = int(kafka.bootstrap.rpartition(":")[2]), embedded._free_ports(3)
    offers = iter([[taken, free[0]], free[1:]])
    monkeypatch.setattr(embedded, "_free_ports", lambda count: next(offers))
    with start_kafka("embedded") as second:
        assert second.bootstrap == f"127.0.0.1:{free[1]}"
        assert cluster_id(second.bootstrap) != cluster_id(kafka.bootstrap)


def test_a_port_that_was_taken_while_the_broker_was_down_gets_a_sentence(monkeypatch):
    run = EmbeddedBroker._run

    def run_too_late(broker: EmbeddedBroker) -> bool:
        host, port = broker.bootstrap.split(":")
        with socket.create_server((host, int(port))):
            return run(broker)

    with start_kafka("embedded") as broker:
        monkeypatch.setattr(EmbeddedBroker, "_run", run_too_late)
        with pytest.raises(LabError, match=r"did not start again[\s\S]*already in use"):
            broker.restart()
        monkeypatch.undo()
        assert broker.restart() > 0


def test_a_broker_that_cannot_start_says_why_and_leaves_nothing(monkeypatch):
    before = set(run_dir().glob("kafka-*")), of_ours("kafka.Kafka")
    monkeypatch.setitem(broker_settings.SETTINGS, "node.id", "not-a-number")
    with pytest.raises(LabError, match=r"did not start[\s\S]*not-a-number"):
        start_kafka("embedded")
    assert (set(run_dir().glob("kafka-*")), of_ours("kafka.Kafka")) == before


# ---- any broker


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_broker_that_died_is_restarted_with_its_topics_stopped_and_replaced(backend):
    first = start_kafka(backend)
    first.create_topic("kept")
    kill_broker(first)
    first.restart()
    with first.admin() as admin:
        assert "kept" in admin.list_topics()
    kill_broker(first)
    first.stop()
    first.stop()
    with pytest.raises(LabError, match="Kafka was stopped"):
        first.restart()
    with start_kafka(backend) as second:
        assert second.create_topic("new") == "new"


def kill_broker(kafka) -> None:
    if kafka.backend == "embedded":
        os.kill(kafka.broker.pid, signal.SIGKILL)
        assert gone(kafka.broker.pid)
    else:
        container = kafka.broker._container
        container.exec(["sh", "-c", "kill -9 $(cat /tmp/broker.pid)"])
        alive = ["sh", "-c", "kill -0 $(cat /tmp/broker.pid)"]
        assert eventually(lambda: container.exec(alive).exit_code != 0, 10)


@pytest.mark.docker
def test_after_a_container_that_was_stopped_there_is_nothing_to_wait_for_at_exit():
    with start_kafka("testcontainers"):
        assert "container" in {kind for kind, _ in janitor._todo}
    assert "container" not in {kind for kind, _ in janitor._todo}


def test_an_external_broker_that_is_gone_does_not_break_the_clean_up(monkeypatch, capsys):
    with start_kafka("embedded") as owner:
        monkeypatch.setenv("LAB_KAFKA_BOOTSTRAP", owner.bootstrap)
        guest = start_kafka("external")
        guest.create_topic("guest")
    guest.stop()
    assert f"{guest.bootstrap} does not answer any more: guest may still be there" in capsys.readouterr().out
    guest.stop()
    assert capsys.readouterr().out == ""


def test_a_start_that_fails_half_way_leaves_no_topic_on_an_external_broker(kafka, monkeypatch):
    def refuse(*_):
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT))

    monkeypatch.setenv("LAB_KAFKA_BOOTSTRAP", kafka.bootstrap)
    monkeypatch.setattr(kafka_module, "_produce_and_read_back", refuse)
    with pytest.raises(LabError, match="cannot be used"):
        start_kafka("external")
    with kafka.admin() as admin:
        assert [name for name in admin.list_topics() if name.startswith("lab-ready")] == []


def test_a_topic_of_somebody_else_stays_theirs(kafka, monkeypatch):
    kafka.create_topic("theirs")
    monkeypatch.setenv("LAB_KAFKA_BOOTSTRAP", kafka.bootstrap)
    with start_kafka("external") as guest, pytest.raises(kafka_module.AdminError):
        guest.create_topic("theirs")
    with kafka.admin() as admin:
        assert "theirs" in admin.list_topics()
