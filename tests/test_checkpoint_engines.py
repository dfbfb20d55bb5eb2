"""A real checkpoint folder, written by a real Spark, and a store that really answers late."""

import time
from dataclasses import replace

import pytest

from helpers.commands.queries import TUNED, count_per_key, forward
from helpers.engines.scratch import run_dir
from helpers.engines.spark import start_spark, stop_spark
from helpers.errors import LabError
from helpers.evidence import batches, checkpoint, pauses
from helpers.faults.slow_store import slow_store
from helpers.ruler.experiment import Setup, measure
from helpers.ruler.load import Load
from helpers.ruler.watch import Watch

pytestmark = pytest.mark.engine

DELAY = 250
REAL, MICRO = {"realTime": "5 seconds"}, {"processingTime": "1 second"}
LOAD = Load(rate=200, seconds=14, warmup=2)


@pytest.fixture(scope="module")
def spark():
    yield start_spark(4)
    stop_spark()


@pytest.fixture(scope="module")
def slow_and_stateful(spark, kafka):
    """A count per key in Real-Time Mode, its checkpoint in the slow store."""

    def query(route):
        return count_per_key(spark, TUNED)(replace(route, checkpoint=slow_store(spark, route.checkpoint, DELAY)))

    return measure(spark, kafka, Setup("real-time, slow", query, REAL, LOAD), Watch())


def test_a_request_to_the_slow_store_waits_and_the_file_is_on_the_local_disk(spark):
    folder = run_dir() / "slow"
    path = spark._jvm.org.apache.hadoop.fs.Path(slow_store(spark, str(folder), DELAY) + "/written")
    fs = path.getFileSystem(spark._jsc.hadoopConfiguration())
    requests = {
        "create": lambda: fs.create(path, True).close(),
        "open": lambda: fs.open(path).close(),
        "list": lambda: fs.listStatus(path.getParent()),
        "rename": lambda: fs.rename(path, path.suffix("-2")),
    }
    for name, request in requests.items():
        begun = time.monotonic()
        request()
        assert time.monotonic() - begun >= DELAY / 1000, name
    assert (folder / "written-2").exists()
    begun = time.monotonic()
    assert fs.delete(path.getParent(), True)
    assert time.monotonic() - begun >= DELAY / 1000
    assert not folder.exists()


def test_two_delays_live_side_by_side(spark):
    conf = spark._jsc.hadoopConfiguration()
    stores = [spark._jvm.org.apache.hadoop.fs.Path(slow_store(spark, "/", ms)).getFileSystem(conf) for ms in (0, 7)]
    assert [store.getUri().toString() for store in stores] == ["slow://0", "slow://7"]


def test_the_slow_store_needs_local_mode(spark, monkeypatch):
    monkeypatch.setattr(spark.sparkContext, "master", "spark://elsewhere:7077")
    with pytest.raises(LabError, match="needs Spark in local mode"):
        slow_store(spark, "/somewhere", 1)


def test_a_stateful_query_waits_for_the_slow_store_at_every_boundary(slow_and_stateful):
    assert slow_and_stateful.lost == 0
    cost = batches.boundary_cost(slow_and_stateful, 5)
    assert cost["walCommit"] >= 2 * DELAY  # it writes a file and renames it
    assert cost["commitOffsets"] >= 2 * DELAY


def test_every_boundary_of_a_real_run_is_found_with_its_pause(slow_and_stateful):
    found = pauses.at_boundaries(slow_and_stateful)
    assert len(found) >= 1
    assert all(pause.ms >= 4 * DELAY for pause in found), found


def test_real_time_mode_writes_its_offsets_at_the_end_and_the_state_before_them(slow_and_stateful):
    assert checkpoint.typical_share(slow_and_stateful, "offsets") > 0.8
    one = slow_and_stateful.rounds[0]
    last = one["progress"][-1]["batch"]
    at: dict[str, list[float]] = {}
    for file in one["checkpoint"]:
        if file["batch"] == last:
            at.setdefault(file["kind"], []).append(file["at"])
    assert len(at["state"]) >= 2, "one file for each of the two shuffle partitions"
    assert min(at["state"]) < at["offsets"][0] < at["commits"][0]


def test_micro_batch_writes_its_offsets_at_the_start(spark, kafka):
    setup = Setup("micro-batch", forward(spark, TUNED), MICRO, replace(LOAD, seconds=3))
    trace = measure(spark, kafka, setup, Watch())
    assert all(one.batch > 0 for one in checkpoint.written(trace, "offsets"))
    order = zip(checkpoint.written(trace, "offsets"), checkpoint.written(trace, "commits"), strict=True)
    assert all(offsets.share < commits.share for offsets, commits in order)
    assert checkpoint.typical_share(trace, "offsets") < 0.6
