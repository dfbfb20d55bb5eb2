"""The real broker and the real Spark: one of each for all tests, and a second kind of broker where the kind matters."""

import os
import signal
import time
from dataclasses import replace

import psutil
import pytest
from conftest import gone
from pyspark.sql import functions as F

from helpers.commands.queries import FORKS, MICRO, REAL, TUNED, count_per_key, forward, kafka_to_kafka
from helpers.engines import kafka as kafka_module
from helpers.engines.embedded import EmbeddedBroker, _free_ports
from helpers.engines.kafka import start_kafka
from helpers.engines.scratch import run_dir
from helpers.engines.spark import log_file, start_spark, stop_spark
from helpers.errors import LabError
from helpers.evidence import forks
from helpers.ruler.experiment import Setup, interleave, measure, measure_ruler
from helpers.ruler.load import Load
from helpers.ruler.route import fresh_route
from helpers.ruler.watch import Watch
from helpers.settings import MANAGER, NO_FORKS

pytestmark = pytest.mark.engine

SHORT = Load(rate=200, seconds=3, warmup=2, patience=60)


@pytest.fixture(scope="module")
def spark():
    yield start_spark(4, **{"spark.shuffle.streaming.networkBufferMaxWaitTimeMs": 5})
    stop_spark()


def listening(pid: int) -> set[str]:
    family = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    return {c.laddr.ip for p in family for c in p.net_connections("inet") if c.status == psutil.CONN_LISTEN}


# ---- the broker


def test_a_measured_topic_carries_the_brokers_append_time(each_kafka):
    name = each_kafka.create_topic("stamped", partitions=3, append_time=True)
    with each_kafka.admin() as admin:
        described = next(topic for topic in admin.describe_topics([name]))
    assert len(described["partitions"]) == 3
    trace = measure_ruler(each_kafka, replace(SHORT, seconds=2, warmup=1), watch=Watch())
    assert (trace.samples["received"] >= trace.samples["appended"] - 0.002).all()
    assert (trace.samples["appended"] >= trace.samples["due"] - 0.002).all()


def test_the_broker_listens_on_loopback_only(each_kafka):
    if each_kafka.backend == "embedded":
        assert {ip.removeprefix("::ffff:") for ip in listening(each_kafka.broker.pid)} == {"127.0.0.1"}
    else:
        each_kafka.broker._container.get_wrapped_container().reload()
        ports = each_kafka.broker._container.get_wrapped_container().attrs["NetworkSettings"]["Ports"]
        assert {binding["HostIp"] for bindings in ports.values() for binding in bindings or []} == {"127.0.0.1"}


def test_a_second_broker_runs_beside_the_first_on_the_port_it_is_told_and_stop_leaves_nothing(kafka, monkeypatch):
    [port] = _free_ports(1)
    monkeypatch.setenv("LAB_KAFKA_PORT", str(port))
    second = start_kafka("embedded")
    assert isinstance(second.broker, EmbeddedBroker)
    pid = second.broker.pid
    assert second.bootstrap == f"127.0.0.1:{port}" != kafka.bootstrap
    second.stop()
    second.stop()
    assert gone(pid) and not gone(kafka.broker.pid, 0)


@pytest.mark.docker
def test_auto_prefers_a_container_where_docker_runs_and_stop_leaves_none(monkeypatch):
    import docker

    from helpers.engines.container import ContainerBroker

    monkeypatch.delenv("LAB_KAFKA", raising=False)
    monkeypatch.delenv("LAB_KAFKA_BOOTSTRAP", raising=False)
    with start_kafka() as broker:
        assert broker.backend == "testcontainers" and isinstance(broker.broker, ContainerBroker)
        ours = {"all": True, "filters": {"label": broker.broker._label}}
        assert len(docker.from_env().containers.list(**ours)) == 1
    assert docker.from_env().containers.list(**ours) == []


@pytest.mark.docker
def test_an_image_that_cannot_be_had_fails_when_forced_and_falls_back_in_auto(monkeypatch, capsys):
    monkeypatch.setenv("LAB_KAFKA_IMAGE", "local/no-such-image:0")
    monkeypatch.delenv("LAB_KAFKA", raising=False)
    with pytest.raises(LabError, match=r"local/no-such-image:0 is not here.*LAB_KAFKA=embedded"):
        start_kafka("testcontainers")
    with start_kafka() as broker:
        assert broker.backend == "embedded"
    assert "no-such-image" in capsys.readouterr().out


def test_ready_means_a_record_came_back(monkeypatch):
    """If the round trip fails, start_kafka does not hand out the broker and leaves none running."""
    seen = []

    def refuse(kafka, seconds=20):
        seen.append(kafka.broker.pid)
        raise LabError("no round trip")

    monkeypatch.setattr(kafka_module, "check_round_trip", refuse)
    with pytest.raises(LabError, match="no round trip"):
        start_kafka("embedded")
    assert gone(seen[0])


# ---- Spark


def test_spark_listens_on_loopback_and_logs_to_a_file(spark, capfd):
    pid = spark.sparkContext._gateway.proc.pid
    assert {ip.removeprefix("::ffff:") for ip in listening(pid)} == {"127.0.0.1"}
    spark.sparkContext._jvm.org.slf4j.LoggerFactory.getLogger("lab").error("a line for the log")
    assert "a line for the log" in log_file(spark).read_text()
    assert capfd.readouterr() == ("", "")


def test_measuring_loses_nothing_and_real_time_is_faster(spark, kafka):
    query = forward(spark, TUNED)
    traces = interleave(
        spark, kafka, [Setup("micro-batch", query, MICRO, SHORT), Setup("real-time", query, REAL, SHORT)]
    )
    for trace in traces.values():
        assert (trace.lost, trace.duplicated, trace.total("send_errors")) == (0, 0, 0)
        assert len(trace.samples) == pytest.approx(SHORT.rate * SHORT.seconds, abs=2)  # one at each end of a round
        assert len(trace.rounds) == 2
    assert traces["micro-batch"].p50 > 3 * traces["real-time"].p50


def test_checkpoints_start_processes_only_where_spark_chooses_who_writes_them(spark, kafka):
    query, seen = forward(spark, TUNED), {}
    for name, conf in {"as installed": FORKS, "lab": {}}.items():
        with forks.recorded(spark) as started:
            trace = measure(spark, kafka, Setup("micro-batch", query, MICRO, SHORT, conf=conf), Watch())
        batches = len(trace.rounds[0]["progress"])
        seen[name] = (started, batches, trace.meta["checkpoint_manager"])
    started, batches, manager = seen["as installed"]
    assert manager == "FileContextBasedCheckpointFileManager"
    assert started.programs()["readlink"] > 5 * batches and started.programs()["chmod"] > batches
    assert {"fs.FileUtil.readLink", "fs.RawLocalFileSystem.setPermission"} <= set(started.askers())
    started, batches, manager = seen["lab"]
    assert (len(started), manager) == (0, "FileSystemBasedCheckpointFileManager") and batches > 5
    assert MANAGER in dict(spark.sparkContext.getConf().getAll()) and spark.conf.get(MANAGER) == NO_FORKS


@pytest.mark.docker
def test_measuring_through_a_container_loses_nothing(spark, container):
    trace = measure(spark, container, Setup("real-time", forward(spark, TUNED), REAL, SHORT), Watch())
    assert (trace.lost, trace.duplicated, trace.total("send_errors")) == (0, 0, 0)
    assert len(trace.samples) == pytest.approx(SHORT.rate * SHORT.seconds, abs=1)
    assert (trace.meta["backend"], trace.clock) == ("testcontainers", "appended")


def test_a_run_in_which_the_machine_stood_still_is_made_again(spark, kafka):
    class Freeze(Watch):
        """Stops the ruler for two seconds in the middle of the first attempt, as a suspended machine would."""

        done, begun = False, 0

        def begin(self, setup_name, load):
            self.begun += 1

        def look(self, probe):
            if probe.status["phase"] == "measuring" and not self.done:
                self.done = True
                os.kill(probe._process.pid, signal.SIGSTOP)
                time.sleep(2)
                os.kill(probe._process.pid, signal.SIGCONT)

    freeze = Freeze()
    trace = measure(spark, kafka, Setup("real-time", forward(spark, TUNED), REAL, SHORT), freeze)
    assert freeze.begun == 2
    assert not trace.spoilt and "stood still" in trace.rounds[0]["redone"]
    assert trace.lost == 0


def test_a_lost_and_a_repeated_event_are_counted(spark, kafka):
    """The ruler must see loss and duplicates: a query that drops one event in ten and doubles another."""

    def leak(events):
        number = F.regexp_extract(F.get_json_object(F.col("value").cast("string"), "$.event_id"), r"-(\d+)$", 1)
        kept = events.withColumn("n", number.cast("long") % 10).where("n != 3")
        copies = kept.withColumn("copy", F.explode(F.expr("IF(n = 5, array(1, 2), array(1))")))
        return copies.select("key", "value")

    leaky = Setup("leaky", kafka_to_kafka(spark, leak), REAL, replace(SHORT, drain=2))
    trace = measure(spark, kafka, leaky, Watch())
    tenth = trace.total("sent") / 10
    assert trace.lost == pytest.approx(tenth, abs=1)
    assert trace.duplicated == pytest.approx(tenth, abs=1)


def test_a_query_that_reads_nothing_is_explained(spark, kafka):
    def deaf(route):
        return forward(spark)(replace(route, events=kafka.create_topic(f"elsewhere-{route.events}")))

    with pytest.raises(LabError, match="No result came back within 5 s"):
        measure(spark, kafka, Setup("deaf", deaf, MICRO, replace(SHORT, patience=5)), Watch())
    assert spark.streams.active == []


def test_what_a_query_leaves_in_sparks_kafka_producer_does_not_disturb_the_next_one(spark, kafka):
    """The next query with the same settings gets the same producer, and it asks for all topics that it ever wrote to:
    every second here, every five minutes as installed. If one is gone, it asks on and on, and rows wait."""
    hasty = forward(spark, TUNED, {"kafka.metadata.max.age.ms": "1000"})
    for _ in range(2):
        assert measure(spark, kafka, Setup("real-time", hasty, REAL, SHORT), Watch()).lost == 0
    assert "UNKNOWN_TOPIC_OR_PARTITION" not in log_file(spark).read_text()


def test_nothing_of_a_measurement_is_left_on_disk_or_broker(spark, kafka, monkeypatch):
    monkeypatch.setattr(kafka_module, "FORGOTTEN_SECONDS", 0)  # no producer knows the results topics any more
    with fresh_route(kafka) as last:
        pass
    with kafka.admin() as admin:
        topics = admin.list_topics()
    assert [name for name in topics if name.startswith(("events-", "results-"))] == [last.results]
    assert not [str(path) for left in run_dir().glob("checkpoint-*") for path in (left, *left.rglob("*"))]


@pytest.mark.parametrize("slots", [0, -1, 10_000, "many"])
def test_a_silly_number_of_slots_gets_a_sentence(slots):
    with pytest.raises(LabError, match="whole number of task slots"):
        start_spark(slots)


# ---- beyond one session: these replace the module's Spark, so they come last


def test_a_second_start_replaces_the_first_and_too_few_slots_are_explained(spark, kafka):
    pid = spark.sparkContext._gateway.proc.pid
    small = start_spark(2, **{"spark.driver.memory": "1g"})
    assert gone(pid)
    assert small.sparkContext.defaultParallelism == 2
    with pytest.raises(LabError, match=r"Too few slots.*needs 3.*start_lab\(slots="):
        measure(small, kafka, Setup("groupBy", count_per_key(small), REAL, SHORT), Watch())
    assert small.streams.active == []
    stop_spark()
    stop_spark()


def test_a_master_that_does_not_exist_gets_a_sentence(monkeypatch):
    monkeypatch.setenv("LAB_SPARK_MASTER", "local-cluster[nonsense]")
    with pytest.raises(LabError, match="did not start on local-cluster"):
        start_spark(2)
