"""Queries that are killed: nothing is lost, what is repeated has a bound, and nothing is left behind."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from conftest import eventually, gone
from pyspark.sql.streaming import DataStreamWriter

from helpers.commands.queries import TUNED, kafka_to_kafka
from helpers.engines.kafka import Kafka
from helpers.engines.spark import start_spark, stop_spark
from helpers.errors import LabError
from helpers.evidence.checkpoint import Checkpoint, last_checkpoint, starting_offsets
from helpers.evidence.crashes import Crash, Row, measured, open_window, uncovered
from helpers.faults.pipeline import Pipeline
from helpers.faults.victim import Understudy, pack
from helpers.faults.victim_process import start_query
from helpers.figures.crash import crash_timeline, outage_timeline, repeats
from helpers.ruler.ledger import Ledger
from helpers.settings import ROOT

engine = pytest.mark.engine
REAL = {"realTime": "5 seconds"}
NOTHING_LEFT_WITHIN = 15  # seconds


# ---- queries (functions inside a function travel by value, as those of a notebook do)


def between_topics(transform, **source):
    return lambda spark, route: kafka_to_kafka(spark, transform, TUNED | source)(route)


def forward():
    return between_topics(lambda events: events.select("key", "value"))


def count(**source):
    """A running count per key, and the newest event's number: in Real-Time Mode one row for each event."""

    def transform(events):
        from pyspark.sql import functions as F

        number = F.get_json_object(F.col("value").cast("string"), "$.event_id").cast("long")
        counts = events.groupBy("key").agg(F.count("*").alias("count"), F.max(number).alias("event_id"))
        return counts.select("key", F.to_json(F.struct("count", "event_id")).alias("value"))

    return between_topics(transform, **source)


def by_range():
    return between_topics(lambda events: events.select("key", "value").repartitionByRange(2, "key"))


# ---- without an engine


def checkpoint(folder: Path, committed: dict[int, int], planned: dict[int, int]) -> Path:
    for name in ("commits", "offsets"):
        (folder / name).mkdir()
    for batch, end in (committed | planned).items():
        (folder / "offsets" / str(batch)).write_text(f'v1\n{{"batchWatermarkMs":0}}\n{{"events":{{"0":{end},"1":5}}}}')
        (folder / "offsets" / f".{batch}.crc").write_text("")
    for batch in committed:
        (folder / "commits" / str(batch)).write_text("v1\n{}")
        os.utime(folder / "commits" / str(batch), (1000 + batch, 1000 + batch))
    return folder


def newest(folder: Path) -> Checkpoint:
    last = last_checkpoint(folder)
    assert last is not None
    return last


def test_the_last_checkpoint_is_the_newest_commit_not_the_newest_plan(tmp_path):
    last = newest(checkpoint(tmp_path, {8: 800, 9: 900, 10: 1000}, {11: 1100}))
    assert (last.batch, last.at, last.end) == (10, 1010, 1005)


def test_a_query_that_never_committed_has_no_checkpoint(tmp_path):
    assert last_checkpoint(tmp_path) is None
    assert last_checkpoint(checkpoint(tmp_path, {}, {0: 100})) is None


def offsets_file(folder: Path, batch: int, *lines: str) -> Path:
    (folder / "offsets" / str(batch)).write_text("\n".join(lines))
    return folder


def test_another_query_goes_on_where_the_newest_commit_ended(tmp_path):
    folder = checkpoint(tmp_path, {8: 800, 10: 1000}, {11: 1100})
    assert json.loads(starting_offsets(folder)) == {"events": {"0": 1000, "1": 5}}


@pytest.mark.parametrize("names", [("", ""), ("0:", "clicks:")], ids=["format 1", "format 2, with names"])
def test_each_source_has_its_own_starting_offsets(tmp_path, names):
    lines = [f'{name}{{"{topic}":{{"0":7}}}}' for name, topic in zip(names, ("a", "b"), strict=True)]
    folder = offsets_file(checkpoint(tmp_path, {0: 1}, {}), 0, "v1", "{}", *lines, f"{names[0]}-")
    assert [starting_offsets(folder, source) for source in (0, 1)] == ['{"a":{"0":7}}', '{"b":{"0":7}}']
    with pytest.raises(LabError, match="had read nothing"):
        starting_offsets(folder, 2)
    with pytest.raises(LabError, match="source=3: this query has 3"):
        starting_offsets(folder, 3)


def test_a_folder_without_a_commit_has_no_offsets_to_start_from(tmp_path):
    with pytest.raises(LabError, match="no checkpoint folder"):
        starting_offsets(tmp_path)
    with pytest.raises(LabError, match="no checkpoint folder"):
        starting_offsets(tmp_path / "nowhere")
    with pytest.raises(LabError, match=r'ever committed.*startingOffsets="earliest"'):
        starting_offsets(checkpoint(tmp_path, {}, {0: 100}))


def result(event: int, at: float = 0.0) -> Row:
    return Row("k", f'{{"event_id": {event}}}', at, False)


def test_an_event_is_uncovered_once_however_often_its_row_is_there():
    rows = [result(4), result(5), result(6), result(6), Row("k", '{"count": 9}', 0.0, False)]
    assert (uncovered(rows, 5), uncovered(rows, 7)) == (2, 0)


def test_the_window_is_open_from_a_batchs_first_row_to_its_commit(tmp_path):
    folder = checkpoint(tmp_path, {batch: batch for batch in range(8)}, {})  # committed at 1000, 1001, …
    rows = [result(1, 1000.5), *(result(batch, 1000.75 + batch) for batch in range(7))]
    assert open_window(folder, rows, since=0) == pytest.approx((0.5 + 6 * 0.25) / 7)
    assert open_window(folder, rows, since=1000) == pytest.approx(0.25)
    assert open_window(folder, [], since=0) == 0
    with pytest.raises(LabError, match="too few"):
        open_window(folder, rows, since=1004)


def test_a_crash_counts_the_rows_that_came_again():
    crash = Crash(REAL, at=100.0, since=2.0, end=0, sent_since=5)
    rows = [Row("k", "1", 103.0, True), Row("k", "2", 103.1, True), Row("k", "3", 103.2, False)]
    after = measured(crash, rows)
    assert (after.repeated, after.away) == (2, 3.0)
    assert measured(crash, []).repeated == 0


@pytest.fixture
def waiting(tmp_path):
    """A pipeline on a checkpoint folder, without anything that runs."""
    pipeline = Pipeline.__new__(Pipeline)
    pipeline.route = SimpleNamespace(checkpoint=checkpoint(tmp_path, {0: 100}, {}))
    pipeline.rows, pipeline._ledger, pipeline.sent_at = [Row("k", "1", time.time() + 60, False)], Ledger(), []
    pipeline._live, pipeline._fault, pipeline._victim, pipeline._yours = 0.0, "", None, None
    return pipeline


def commit(folder: Path, batch: int) -> None:
    (folder / "offsets" / str(batch)).write_text('v1\n{}\n{"events":{"0":1}}')
    (folder / "commits" / str(batch)).write_text("v1\n{}")


def test_a_kill_waits_for_the_checkpoints_age(waiting):
    commit(waiting.route.checkpoint, 1)
    waiting.wait_for_checkpoint(0.3)
    assert time.time() - newest(waiting.route.checkpoint).at >= 0.3


def test_a_kill_does_not_wait_for_an_age_that_no_checkpoint_reaches(waiting):
    over = threading.Event()

    def commit_often():
        for batch in range(1, 1_000):
            commit(waiting.route.checkpoint, batch)
            if over.wait(0.02):
                return

    fast = threading.Thread(target=commit_often)
    fast.start()
    began = time.monotonic()
    try:
        waiting.wait_for_checkpoint(60)
    finally:
        over.set()
        fast.join()
    assert time.monotonic() - began < 60


@pytest.mark.parametrize("settings", [{"rate": 0}, {"rate": 5_000}, {"keys": 0}, {"twice": -1}])
def test_a_silly_load_gets_a_sentence(settings):
    with pytest.raises(LabError, match="send 1 to 2,000 events per second"):
        Pipeline(None, forward(), None, **settings)


def test_what_cannot_travel_gets_a_sentence():
    lock = threading.Lock()
    with pytest.raises(LabError, match=r"cannot travel.*Use the `spark` that it is given"):
        pack(lambda spark, route: lock)
    with pytest.raises(LabError, match="is no query"):
        pack("SELECT 1")


@pytest.mark.parametrize(
    ("query", "trigger", "sentence"),
    [
        (lambda spark, route: None, REAL, "returned None, not a stream writer"),
        (lambda spark, route: 1 / 0, REAL, r"did not start .*ZeroDivisionError: division by zero"),
        (
            lambda spark, route: DataStreamWriter.__new__(DataStreamWriter),
            {"realtime": "5 seconds"},
            r"did not start under the trigger \{'realtime'.*unexpected keyword",
        ),
    ],
    ids=["no writer", "an error", "no such trigger"],
)
def test_a_query_that_cannot_be_started_gets_a_sentence(query, trigger, sentence):
    route = {"bootstrap": "127.0.0.1:1", "events": "events", "results": "results", "checkpoint": "checkpoint"}
    with pytest.raises(LabError, match=sentence):
        start_query(None, {"route": route, "trigger": trigger}, pack(query))


def test_the_timeline_shows_first_and_repeated_rows_apart():
    rows = [Row("k", f'{{"event_id": {n}}}', 97.0 + n, again) for n, again in ((0, False), (1, False), (2, False))]
    rows += [Row("k", f'{{"event_id": {n}}}', 105.0 + n, again) for n, again in ((1, True), (2, True), (3, False))]
    crash = Crash(REAL, at=100.0, since=2.0, end=1, sent_since=2, repeated=2, away=6.0)
    ax = crash_timeline(SimpleNamespace(crashes=[crash], rows=rows, sent_at=[97, 98, 99, 100.5])).axes[0]
    lines = {line.get_label(): line.get_xydata().tolist() for line in ax.lines}
    assert lines["result, first time"] == [[-3, 0], [-2, 1], [-1, 2], [8, 3]]
    assert lines["result, once more"] == [[6, 1], [7, 2]]
    assert lines["last checkpoint is on disk"][0][0] == -2
    assert lines["… and ends here"] == [[-2, 1]], "event 1 was sent at 98"
    assert ax.get_title(loc="left") == "Killed 2.0 s after a checkpoint: 2 rows came twice"
    with pytest.raises(LabError, match="no crash number 1"):
        crash_timeline(SimpleNamespace(crashes=[crash]), 1)


def test_each_crash_is_a_marker_at_its_checkpoints_age():
    crashes = [Crash(REAL, 0, since, 0, 0, repeated) for since, repeated in ((4.0, 1_100), (2.0, 0))]
    ax = repeats({"real-time 5 s": crashes}, rate=250).axes[0]
    lines = {line.get_label(): line.get_xydata().tolist() for line in ax.lines}
    assert lines["real-time 5 s"] == [[4, 1_100], [2, 0]]
    assert ax.get_ylim()[1] > 1_100
    assert "from 0 to 1,100 rows" in ax.get_title(loc="left")
    assert {line.get_markerfacecolor() for line in ax.lines[1:]} == {"none"}, "none hides another"


def test_an_outage_shows_when_no_result_came():
    rows = [result(n, at) for n, at in enumerate((99.0, 100.0, 107.0, 107.5))]
    seen = SimpleNamespace(crashes=[], rows=rows, sent_at=[99.0, 100.0, 101.0, 102.0])
    ax = outage_timeline(seen, at=100.0, seconds=6.0).axes[0]
    lines = {line.get_label(): line.get_xydata().tolist() for line in ax.lines}
    assert lines["result, first time"] == [[-1, 0], [0, 1], [7, 2], [7.5, 3]]
    assert ax.get_title(loc="left") == "Broker away for 6 s: no result for 7 s, then 0 came twice"


# ---- with one


@pytest.fixture(scope="module")
def understudy():
    """One for all tests: what one test leaves in reserve the next one uses."""
    reserve = Understudy()
    yield reserve
    reserve.close()


@pytest.fixture
def pipeline(kafka, understudy):
    opened = []

    def open_pipeline(query, **settings) -> Pipeline:
        opened.append(Pipeline(kafka, query, understudy, **settings))
        return opened[-1]

    yield open_pipeline
    for one in opened:
        one.close()


@engine
def test_kills_at_random_moments_lose_nothing_and_miscount_nothing(pipeline, kills):
    seed = random.SystemRandom().randrange(10**6)
    print(f"random seed {seed}")
    moments = random.Random(seed)
    running = pipeline(count(), rate=200)
    running.start(REAL)
    running.wait_for_checkpoint(0)  # a kill in the middle of the very first one is another test, below
    for _ in range(kills - 1):
        time.sleep(moments.uniform(0.2, 9))
        running.kill()
        running.start(REAL, catch_up=False)
    running.catch_up()
    running.kill(after=1)  # not left to chance: rows have come out since the checkpoint
    running.start(REAL, catch_up=False)
    running.finish()

    counts: dict[str, int] = {}
    for row in running.rows:
        counts[row.key] = max(row.json["count"], counts.get(row.key, 0))
    assert len(running.crashes) == kills
    assert set(range(running.sent)) - {row.json["event_id"] for row in running.rows} == set(), f"lost; seed {seed}"
    assert counts == running.truth, f"seed {seed}"
    for crash in running.crashes:
        assert crash.repeated <= crash.uncovered, f"{crash}, seed {seed}"
    assert running.crashes[-1].repeated == running.crashes[-1].uncovered > 0


MICRO = {"processingTime": "0 seconds"}


def with_conf(query, **conf):
    def prepared(spark, route):
        for name, value in conf.items():
            spark.conf.set(f"spark.sql.streaming.{name.replace('__', '.')}", value)
        return query(spark, route)

    return prepared


@engine
def test_a_folder_keeps_the_format_of_its_first_commit(pipeline):
    running = pipeline(forward())
    running.start(MICRO)
    running.stop(after=0)
    for query in (forward(), with_conf(forward(), stateStore__checkpointFormatVersion=2)):
        running._query = query
        assert "CHECKPOINT_FORMAT_V1" in running.refusal(REAL)
        running.start(MICRO)  # setting it now changes nothing
        running.stop(after=0)
    running._query = with_conf(forward(), realTimeMode__dangerouslyAllowCheckpointV1__enabled="true")
    assert running.refusal(REAL) == ""
    running.stop(after=0)
    running._query = forward()
    assert "CHECKPOINT_FORMAT_V1" in running.refusal(REAL), "the emergency exit leaves the folder as it is"


@engine
def test_with_a_fresh_folder_a_stateful_query_counts_anew_from_where_the_old_one_ended(pipeline):
    running = pipeline(count())
    running.start(MICRO)
    ended = running.stop(after=0)
    offsets = starting_offsets(running.route.checkpoint)
    assert json.loads(offsets)[running.route.events]["0"] == ended.end > 0
    running.redeploy(count(startingOffsets=offsets))
    before = len(running.rows)
    running.start(REAL, catch_up=False)
    assert eventually(lambda: len(running.rows) > before + running.keys, 60)
    assert min(row.json["count"] for row in running.rows[before:]) == 1
    assert min(row.json["event_id"] for row in running.rows[before:]) == ended.end, "no event is lost"


@engine
def test_drop_duplicates_lets_replayed_events_through_again(pipeline):
    def transform(events):
        from pyspark.sql import functions as F

        number = F.get_json_object(F.col("value").cast("string"), "$.event_id")
        return events.withColumn("number", number).dropDuplicates(["number"]).select("key", "value")

    running = pipeline(between_topics(transform), twice=5)
    running.start(REAL)
    killed = running.kill(after=3)
    assert running.records > 1.1 * running.sent and not any(row.again for row in running.rows)
    running.start(REAL)
    running.finish()
    assert running.crashes[0].repeated > killed.since * running.rate / 2
    assert {row.json["event_id"] for row in running.rows} == set(range(running.sent))


@engine
def test_a_first_checkpoint_cut_off_in_the_middle_is_explained_and_the_remedy_works(pipeline):
    running = pipeline(count())
    folder = Path(running.route.checkpoint)
    for part in ("offsets", "commits"):
        (folder / part).mkdir(parents=True)
        (folder / part / ".0.7c0f.tmp").touch()
        with pytest.raises(LabError, match=r"very first checkpoint.*delete the folder and start again"):
            running.start(REAL)
        shutil.rmtree(folder)
    running.start(REAL)
    running.finish()
    assert {row.json["event_id"] for row in running.rows} == set(range(running.sent))


@engine
def test_what_spark_refuses_gets_a_sentence_and_leaves_nothing(pipeline, understudy):
    refused = pipeline(by_range())
    understudy.prepare()
    victim = understudy._spare
    with pytest.raises(LabError, match="STREAMING_REAL_TIME_MODE"):
        refused.start(REAL)
    assert gone(victim.pid, NOTHING_LEFT_WITHIN) and gone(victim.jvm, NOTHING_LEFT_WITHIN) and not victim._log.exists()
    with pytest.raises(LabError, match="No query runs"):
        refused.kill()
    refused.close()
    refused.close()
    assert not Path(refused.route.checkpoint).exists()


@engine
def test_a_killed_victim_leaves_no_jvm_and_no_folder(pipeline):
    running = pipeline(forward())
    running.start(REAL)
    pid, jvm = running._victim.pid, running._victim.jvm
    folders = {Path(arg).parent for arg in _open_files(jvm) if "/lab-" in arg}
    assert folders, "the JVM's log is in its scratch folder"
    running.kill()
    assert gone(pid, 1) and gone(jvm, 1), "SIGKILL takes effect at once"
    assert eventually(lambda: not any(folder.exists() for folder in folders), NOTHING_LEFT_WITHIN), folders


def _open_files(pid: int) -> list[str]:
    return [file.path for file in psutil.Process(pid).open_files() if file.path.endswith("spark.log")]


@engine
def test_a_query_that_dies_by_itself_is_explained(pipeline):
    running = pipeline(between_topics(lambda events: events.selectExpr("key", "raise_error('no such luck') AS value")))
    with pytest.raises(LabError, match=r"no such luck|Spark stopped the query"):
        running.start(REAL)


@engine
def test_kill_9_of_the_kernel_leaves_no_query_and_no_understudy(kafka):
    code = (
        "import time\n"
        "from helpers.engines.kafka import Kafka\n"
        "from helpers.engines.scratch import run_dir\n"
        "from helpers.faults.pipeline import Pipeline\n"
        "from helpers.faults.victim import Understudy\n"
        "from helpers.commands.queries import forward\n"
        f"k = Kafka({kafka.bootstrap!r}, 'external', 'a test'); u = Understudy()\n"
        "p = Pipeline(k, lambda spark, route: forward(spark)(route), u); p.start({'realTime': '5 seconds'})\n"
        "u._spare._wait_for('ready', 100)\n"
        "print(p._victim.pid, p._victim.jvm, u._spare.pid, u._spare.jvm, run_dir(), flush=True)\n"
        "time.sleep(300)"
    )
    kernel = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    *pids, folder = kernel.stdout.readline().split()
    assert len(pids) == 4
    assert all(psutil.pid_exists(int(pid)) for pid in pids) and Path(folder).exists()
    os.kill(kernel.pid, signal.SIGKILL)
    kernel.wait()
    assert all(gone(int(pid), NOTHING_LEFT_WITHIN) for pid in pids)
    assert eventually(lambda: not Path(folder).exists(), NOTHING_LEFT_WITHIN), folder


@pytest.fixture(scope="module")
def spark():
    yield start_spark(4)
    stop_spark()


@engine
def test_a_query_outlives_its_brokers_restart(each_kafka, spark, understudy):
    flow = Pipeline(each_kafka, forward(), understudy)
    query = forward()(spark, flow.route).trigger(**REAL).start()
    flow.feed(query)
    bootstrap, before = each_kafka.bootstrap, flow.sent
    assert each_kafka.restart() > 0
    assert each_kafka.bootstrap == bootstrap
    flow.catch_up()
    flow.finish()
    assert query.isActive and flow.sent > before
    assert {row.json["event_id"] for row in flow.rows} == set(range(flow.sent))
    query.stop()
    flow.close()


def test_a_broker_that_is_not_ours_is_left_alone(capsys):
    assert Kafka("somewhere:9092", "external", "LAB_KAFKA_BOOTSTRAP").restart() == 0
    assert "not restarted" in capsys.readouterr().out
