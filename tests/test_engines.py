"""The real broker and the real Spark, on both Kafka backends."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import psutil
import pytest
from conftest import BACKENDS, gone
from pyspark.sql import functions as F

from helpers.commands.queries import TUNED, count_per_key, forward
from helpers.engines import kafka as kafka_module
from helpers.engines.kafka import start_kafka
from helpers.engines.spark import log_file, start_spark, stop_spark
from helpers.errors import LabError
from helpers.paths import ROOT, run_dir
from helpers.ruler.experiment import Setup, Watch, interleave, measure, measure_ruler
from helpers.ruler.probe import Load, Probe

pytestmark = pytest.mark.engine

SHORT = Load(rate=200, seconds=4, warmup=3, patience=60)
MICRO = {"processingTime": "0 seconds"}
REAL = {"realTime": "1 minute"}


@pytest.fixture(scope="module", params=BACKENDS)
def kafka(request):
    with start_kafka(request.param) as broker:
        yield broker


@pytest.fixture(scope="module")
def spark():
    yield start_spark(4, **{"spark.shuffle.streaming.networkBufferMaxWaitTimeMs": 5})
    stop_spark()


def listening(pid: int) -> set[str]:
    family = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    return {c.laddr.ip for p in family for c in p.net_connections("inet") if c.status == psutil.CONN_LISTEN}


# ---- the broker


def test_a_measured_topic_carries_the_brokers_append_time(kafka):
    name = kafka.create_topic("stamped", partitions=3, append_time=True)
    with kafka.admin() as admin:
        described = next(topic for topic in admin.describe_topics([name]))
    assert len(described["partitions"]) == 3
    trace = measure_ruler(kafka, replace(SHORT, seconds=2, warmup=1), watch=Watch())
    assert (trace.samples["received"] >= trace.samples["appended"] - 0.002).all()
    assert (trace.samples["appended"] >= trace.samples["due"] - 0.002).all()


def test_the_broker_listens_on_loopback_only(kafka):
    if kafka.backend == "embedded":
        assert {ip.removeprefix("::ffff:") for ip in listening(kafka.broker.pid)} == {"127.0.0.1"}
    else:
        kafka.broker._container.get_wrapped_container().reload()
        ports = kafka.broker._container.get_wrapped_container().attrs["NetworkSettings"]["Ports"]
        assert {binding["HostIp"] for bindings in ports.values() for binding in bindings or []} == {"127.0.0.1"}


def test_another_notebook_can_use_the_broker_as_an_external_one(kafka, monkeypatch):
    monkeypatch.setenv("LAB_KAFKA_BOOTSTRAP", kafka.bootstrap)
    monkeypatch.delenv("LAB_KAFKA", raising=False)
    with start_kafka() as external:
        assert external.backend == "external"
        external.create_topic("guest")
    with kafka.admin() as admin:
        topics = admin.list_topics()
    assert "guest" not in topics, "an external broker is left as it was found"


def test_two_brokers_run_at_once_and_stop_leaves_nothing():
    first, second = start_kafka("embedded"), start_kafka("embedded")
    pids = [first.broker.pid, second.broker.pid]
    assert first.bootstrap != second.bootstrap
    first.stop()
    first.stop()
    second.stop()
    assert all(gone(pid) for pid in pids)


def test_an_unreachable_external_broker_gets_a_sentence(monkeypatch):
    monkeypatch.setenv("LAB_KAFKA_BOOTSTRAP", "127.0.0.1:1")
    with pytest.raises(LabError, match=r"127\.0\.0\.1:1 cannot be used.*Check that a broker listens there"):
        start_kafka("external")


@pytest.mark.docker
def test_an_image_that_cannot_be_had_fails_when_forced_and_falls_back_in_auto(monkeypatch, capsys):
    monkeypatch.setenv("LAB_KAFKA_IMAGE", "local/no-such-image:0")
    monkeypatch.delenv("LAB_KAFKA", raising=False)
    with pytest.raises(LabError, match=r"local/no-such-image:0 is not here.*LAB_KAFKA=embedded"):
        start_kafka("testcontainers")
    with start_kafka() as broker:
        assert broker.backend == "embedded"
    assert "no-such-image" in capsys.readouterr().out


@pytest.mark.docker
def test_auto_prefers_a_container_where_docker_runs(monkeypatch):
    monkeypatch.delenv("LAB_KAFKA", raising=False)
    with start_kafka() as broker:
        assert broker.backend == "testcontainers"


@pytest.mark.docker
def test_a_container_goes_when_its_owner_is_killed():
    code = "from helpers.engines.kafka import start_kafka as s; import time; k = s('testcontainers'); time.sleep(300)"
    label = _start_and_kill(code, ready="Kafka: testcontainers")
    import docker

    deadline = time.monotonic() + 10
    while found := docker.from_env().containers.list(all=True, filters={"label": "lab.kafka"}):
        ours = [c for c in found if c.labels["lab.kafka"] not in label]
        if not ours:
            break
        assert time.monotonic() < deadline, f"left behind: {ours}"
        time.sleep(0.2)


def _start_and_kill(code: str, ready: str) -> set[str]:
    """Run code, wait for a line, SIGKILL it. Returns the lab containers that were there before."""
    import docker

    before = {c.labels["lab.kafka"] for c in docker.from_env().containers.list(filters={"label": "lab.kafka"})}
    process = subprocess.Popen([sys.executable, "-u", "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert any(line.startswith(ready) for line in process.stdout)
    process.send_signal(signal.SIGKILL)
    process.wait()
    return before


def test_a_fixed_port_is_used_when_it_is_free(monkeypatch):
    from helpers.engines.embedded import _free_ports

    [port] = _free_ports(1)
    monkeypatch.setenv("LAB_KAFKA_PORT", str(port))
    with start_kafka("embedded") as broker:
        assert broker.bootstrap == f"127.0.0.1:{port}"
        with pytest.raises(LabError, match=f"Port {port} .* is taken"):
            start_kafka("embedded")


def test_a_broker_that_cannot_start_says_why(monkeypatch):
    import helpers.engines.embedded as embedded

    monkeypatch.setattr(embedded, "SETTINGS", embedded.SETTINGS + "node.id=not-a-number\n")
    with pytest.raises(LabError, match=r"did not start.*\n.*not-a-number|did not start[\s\S]*not-a-number"):
        start_kafka("embedded")


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
        assert trace.meta["backend"] == kafka.backend
    assert traces["micro-batch"].p50 > 3 * traces["real-time"].p50


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
    assert not trace.frozen and "stood still" in trace.meta["redone"]
    assert trace.lost == 0


def test_a_count_per_key_accounts_for_every_event(spark, kafka):
    query = count_per_key(spark, TUNED)
    for name, trigger in (("micro-batch", MICRO), ("real-time", REAL)):
        trace = measure(spark, kafka, Setup(name, query, trigger, SHORT), Watch())
        assert trace.lost == 0
        assert len(trace.samples) == pytest.approx(SHORT.rate * SHORT.seconds, abs=1)
        if name == "micro-batch":
            assert trace.total("rows") < trace.total("sent"), "update mode: one row per key and batch"


def test_a_lost_and_a_repeated_event_are_counted(spark, kafka):
    """The ruler must see loss and duplicates: a query that drops one event in ten and doubles another."""

    def leaky(route):
        number = F.regexp_extract(F.get_json_object(F.col("value").cast("string"), "$.event_id"), r"-(\d+)$", 1)
        events = (
            spark.readStream.format("kafka")
            .option("kafka.bootstrap.servers", route.bootstrap)
            .option("subscribe", route.events)
            .option("startingOffsets", "earliest")
            .load()
            .withColumn("n", number.cast("long") % 10)
            .where("n != 3")
            .withColumn("copy", F.explode(F.expr("IF(n = 5, array(1, 2), array(1))")))
        )
        return (
            events.select("key", "value")
            .writeStream.format("kafka")
            .option("kafka.bootstrap.servers", route.bootstrap)
            .option("topic", route.results)
            .option("checkpointLocation", route.checkpoint)
            .outputMode("update")
        )

    trace = measure(spark, kafka, Setup("leaky", leaky, REAL, replace(SHORT, drain=2)), Watch())
    tenth = trace.total("sent") / 10
    assert trace.lost == pytest.approx(tenth, abs=1)
    assert trace.duplicated == pytest.approx(tenth, abs=1)


def test_a_query_that_reads_nothing_is_explained(spark, kafka):
    def deaf(route):
        return forward(spark)(replace(route, events=kafka.create_topic(f"elsewhere-{route.events}")))

    with pytest.raises(LabError, match="No result came back within 5 s"):
        measure(spark, kafka, Setup("deaf", deaf, MICRO, replace(SHORT, patience=5)), Watch())
    assert spark.streams.active == []


def test_a_query_that_real_time_mode_refuses_is_explained(spark, kafka):
    def sorted_by_range(route):
        events = (
            spark.readStream.format("kafka")
            .option("kafka.bootstrap.servers", route.bootstrap)
            .option("subscribe", route.events)
            .load()
            .select("key", "value")
            .repartitionByRange(2, "key")
        )
        return (
            events.writeStream.format("kafka")
            .option("kafka.bootstrap.servers", route.bootstrap)
            .option("topic", route.results)
            .option("checkpointLocation", route.checkpoint)
            .outputMode("update")
        )

    with pytest.raises(LabError, match="STREAMING_REAL_TIME_MODE"):
        measure(spark, kafka, Setup("range", sorted_by_range, REAL, SHORT), Watch())
    assert spark.streams.active == []


def test_nothing_of_a_measurement_is_left_on_disk_or_broker(spark, kafka):
    with kafka.admin() as admin:
        topics = admin.list_topics()
    assert not [name for name in topics if name.startswith(("events-", "results-"))]
    assert not list(run_dir().glob("checkpoint-*"))


# ---- beyond one session: these replace the module's Spark, so they come last


def test_a_second_start_in_one_kernel_replaces_the_first():
    first = start_spark(2)
    pid = first.sparkContext._gateway.proc.pid
    second = start_spark(3, **{"spark.driver.memory": "1g"})
    assert gone(pid)
    assert second.sparkContext.defaultParallelism == 3
    assert second.range(5).count() == 5
    stop_spark()
    stop_spark()


def test_too_few_slots_are_explained_and_nothing_keeps_running():
    with start_kafka("embedded") as broker:
        small = start_spark(2)
        setup = Setup("groupBy", count_per_key(small), REAL, SHORT)
        with pytest.raises(LabError, match=r"Too few slots.*needs 3.*start_spark\(slots="):
            measure(small, broker, setup, Watch())
        assert small.streams.active == []
        stop_spark()


@pytest.mark.parametrize("slots", [0, -1, 10_000, "many"])
def test_a_silly_number_of_slots_gets_a_sentence(slots):
    with pytest.raises(LabError, match="whole number of task slots"):
        start_spark(slots)


def test_a_master_that_does_not_exist_gets_a_sentence(monkeypatch):
    monkeypatch.setenv("LAB_SPARK_MASTER", "nonsense://here")
    with pytest.raises(LabError, match="did not start on nonsense://here"):
        start_spark(2)


def test_the_probe_ends_with_its_parent(tmp_path):
    code = (
        "import sys, time; from helpers.engines.kafka import start_kafka; from helpers.ruler.probe import Load, Probe\n"
        "k = start_kafka('embedded', say=lambda _: None); t = k.create_topic('loop', append_time=True)\n"
        "p = Probe(k.bootstrap, t, t, Load(rate=100, seconds=300))\n"
        "print(p._process.pid, k.broker.pid, flush=True); time.sleep(300)"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    pids = [int(word) for word in parent.stdout.readline().split()]
    assert len(pids) == 2
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    assert all(gone(pid) for pid in pids)


def test_the_probe_says_so_when_it_cannot_reach_the_broker():
    probe = Probe("127.0.0.1:1", "events", "results", replace(SHORT, patience=3))
    assert probe.wait(30)
    with pytest.raises(LabError, match="results topic"):
        probe.result()
    probe.stop()


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
