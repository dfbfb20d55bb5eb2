"""What a checkpoint folder tells: on a made-up folder and made-up samples whose answers are known."""

import os
import time
from datetime import UTC, datetime

import numpy as np
import pytest

from helpers.errors import LabError
from helpers.evidence import batches, checkpoint, pauses, tail
from helpers.faults.slow_store import slow_store
from helpers.figures import as_png, file_times, folded, interval_panels, pause_bars, tail_curves
from helpers.ruler.folder import files_of
from helpers.ruler.load import SAMPLE
from helpers.ruler.trace import Trace

START = 1_800_000_000.0
RATE = 1_000


def report(number: int, start: float, seconds: float, **ms: float) -> dict:
    """What Spark says of a batch that began `start` seconds into the run."""
    stamp = datetime.fromtimestamp(START + start, UTC).isoformat(timespec="milliseconds")
    return {"batch": number, "timestamp": stamp, "rows": 1, "ms": {"triggerExecution": seconds * 1000, **ms}}


def run(seconds: float, stops: list[tuple[float, float]], progress: list[dict], files: list[dict] | None = None):
    """A trace at 1,000 events/s: results take 2 ms, but none appears during a stop (begin, end)."""
    samples = np.zeros(int(seconds * RATE), SAMPLE)
    samples["due"] = START + np.arange(len(samples)) / RATE
    samples["appended"] = samples["due"] + 0.002
    for begin, end in stops:
        held = (samples["appended"] >= START + begin) & (samples["appended"] < START + end)
        samples["appended"][held] = START + end
    samples["received"] = samples["appended"]
    one = {"measure_from": START, "measure_to": START + seconds, "progress": progress, "checkpoint": files or []}
    one |= {"sent": len(samples), "lost": 0, "duplicated": 0, "late_share": 0.0}
    return Trace("real-time", samples, {"rounds": [one], "load": {"rate": RATE}})


# ---- the folder


@pytest.fixture
def folder(tmp_path):
    """As Spark leaves it after two batches with state, its checksums and temporary files included."""
    names = ["metadata", ".metadata.crc", "sources/0/0", "offsets/0", "offsets/.0.crc", "offsets/1", "commits/0"]
    names += ["offsets/.2.5e3a.tmp", "state/0/0/_metadata/schema", "state/0/0/1_5a-0b.changelog", "state/0/1/2.delta"]
    names += ["state/0/0/1_5a-0b.changelog.crc", "state/0/1/left/10_ff.zip", "offsets/3.tmp"]
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("v1")
    return tmp_path


def test_only_logs_and_state_are_read_each_with_its_batch(folder):
    found = {(file["kind"], file["batch"], file["file"]) for file in files_of(folder)}
    assert found == {
        ("offsets", 0, "offsets/0"),
        ("offsets", 1, "offsets/1"),
        ("commits", 0, "commits/0"),
        ("state", 0, "state/0/0/1_5a-0b.changelog"),
        ("state", 1, "state/0/1/2.delta"),
        ("state", 9, "state/0/1/left/10_ff.zip"),
    }


def test_a_file_appears_when_it_gets_its_name_not_when_it_was_written(tmp_path):
    (tmp_path / "offsets").mkdir()
    temporary = tmp_path / "offsets" / ".0.tmp"
    temporary.write_text("v1")
    os.utime(temporary, (1, 1))
    before = time.time()
    temporary.rename(tmp_path / "offsets" / "0")
    (file,) = files_of(tmp_path)
    assert file["at"] >= before - 0.02  # the kernel's clock ticks
    assert file["bytes"] == 2


def test_a_file_that_spark_has_just_removed_is_passed_over(folder):
    (folder / "offsets" / "4").symlink_to(folder / "gone")
    assert "offsets/4" not in {file["file"] for file in files_of(folder)}


def test_a_folder_that_is_not_there_has_no_files(tmp_path):
    assert files_of(tmp_path / "missing") == []


# ---- files and batches


def appeared(kind: str, batch: int, at: float) -> dict:
    return {"kind": kind, "batch": batch, "file": f"{kind}/{batch}", "bytes": 2, "at": START + at}


BATCHES = [report(0, -6, 5.9), report(1, 0, 2), report(2, 2, 4)]


def test_a_file_is_placed_within_its_own_batch():
    files = [appeared("offsets", 1, 0.5), appeared("offsets", 2, 5), appeared("commits", 2, 6.2)]
    trace = run(10, [], BATCHES, files)
    assert [one.share for one in checkpoint.written(trace, "offsets")] == pytest.approx([0.25, 0.75])
    assert [one.share for one in checkpoint.written(trace, "commits")] == pytest.approx([1.05]), "after its batch"
    assert checkpoint.typical_share(trace, "offsets") == pytest.approx(0.5)
    assert checkpoint.written(trace, "state") == []


def test_the_first_batch_and_unfinished_ones_are_left_out():
    files = [appeared("offsets", 0, -1), appeared("offsets", 1, 1), appeared("offsets", 7, 9)]
    assert [one.batch for one in checkpoint.written(run(10, [], BATCHES, files), "offsets")] == [1]


def test_a_run_without_a_finished_batch_gets_a_sentence():
    with pytest.raises(LabError, match="no batch after the first ended"):
        checkpoint.written(run(3, [], [report(0, -1, 2)], [appeared("offsets", 0, 0)]), "offsets")
    with pytest.raises(LabError, match="'offsets', 'commits' and 'state'"):
        checkpoint.written(run(3, [], BATCHES), "offset")


# ---- boundaries and pauses


def test_the_pause_is_the_gap_that_contains_the_end_of_a_batch():
    trace = run(10, [(1.9, 2.1), (5.95, 6.25)], BATCHES)
    found = pauses.at_boundaries(trace)
    assert [pause.batch for pause in found] == [1, 2]
    assert [pause.ms for pause in found] == pytest.approx([200, 300], abs=2)
    assert [pause.at for pause in found] == pytest.approx([1.9, 5.95], abs=0.002)
    assert batches.ends(trace) == pytest.approx([2, 6])


def test_a_boundary_that_stops_nothing_has_no_long_pause():
    assert [pause.ms for pause in pauses.at_boundaries(run(10, [], BATCHES))] == pytest.approx([1, 1], abs=1.1)


def test_pauses_are_matched_with_batches_or_left_unexplained():
    trace = run(10, [(1.9, 2.1), (8, 8.4), (9, 9.03)], BATCHES)
    assert [(pause.batch, round(pause.ms, -1)) for pause in pauses.noticeable(trace)] == [(None, 400), (1, 200)]
    assert len(pauses.noticeable(trace, over_ms=20)) == 3


def test_a_gap_that_the_rate_alone_makes_is_no_pause():
    with pytest.raises(LabError, match=r"over_ms=1\.5: at this rate results are 1 ms apart"):
        pauses.noticeable(run(10, [], BATCHES), over_ms=1.5)


def test_batches_that_began_or_ended_outside_the_measured_time_are_not_its_boundaries():
    trace = run(3, [], [report(0, -6, 5), report(1, -1, 2), report(2, 1.5, 4)])
    assert batches.ends(trace) == pytest.approx([1])
    assert batches.starts(trace) == pytest.approx([1.5])


def test_a_boundary_after_the_last_result_has_no_pause():
    trace = run(2.0005, [], [report(0, -3, 5.0004)])
    trace.samples = trace.samples[:1_500]
    assert batches.ends(trace) and pauses.at_boundaries(trace) == []


def test_joined_rounds_keep_their_own_batches():
    first = run(4, [(1.9, 2.2)], [report(0, 0, 2)])
    second = run(4, [(2.9, 3.3)], [report(0, 0, 3)])
    second.samples["due"] += 100
    second.samples["appended"] += 100
    for key in ("measure_from", "measure_to"):
        second.rounds[0][key] += 100
    second.rounds[0]["progress"] = [report(0, 100, 3)]
    both = Trace.join([first, second])
    assert [pause.ms for pause in pauses.at_boundaries(both)] == pytest.approx([300, 400], abs=2)
    assert batches.ends(both) == pytest.approx([2, 7])
    assert batches.starts(both) == pytest.approx([0, 4])


# ---- from the pause to the tail


def every(interval: float, stop: float, times: int = 4) -> Trace:
    """A run of so many intervals, each followed by a pause of `stop` seconds that contains the end of its batch."""
    whole = interval + stop
    ends = [whole * (number + 0.5) for number in range(times)]
    reports = [report(number, end - whole + 0.01, whole) for number, end in enumerate(ends)]
    return run(whole * times, [(end - stop / 4, end + stop * 3 / 4) for end in ends], reports)


SWEEP = {5: every(5, 0.3), 10: every(10, 0.32), 20: every(20, 0.28)}


def test_a_percentile_is_the_pause_less_its_share_of_the_time():
    assert tail.expected([300], 5, 99) == pytest.approx(300 - 53)  # 1 % of 5 s and of the pause
    assert tail.expected([300], 5, 99.9) == pytest.approx(300 - 5.3)
    assert tail.expected([300], 40, 99, calm=[7]) == pytest.approx(7), "beyond the cliff"
    assert tail.cliff([300, 300, 900], 99) == pytest.approx(30)


def test_near_the_cliff_the_tail_of_the_calm_events_shows():
    calm = [1] * 995 + [200] * 5
    assert tail.expected([100], 9.9, 99, calm) == pytest.approx(50, abs=1), "half of the slowest 1 % were calm"
    assert tail.expected([100], 9.9, 99, calm=[1]) == pytest.approx(1, abs=1)


def test_unequal_pauses_count_as_far_as_they_are_longer():
    assert tail.expected([300, 500], 5, 99) == pytest.approx(500 - 108)  # nobody in the shorter one is so slow
    assert tail.expected([300, 340], 5, 99) == pytest.approx(320 - 53.2)
    with pytest.raises(LabError, match="No pause"):
        tail.expected([], 5, 99)


@pytest.mark.parametrize("interval", SWEEP)
def test_the_tail_of_a_made_up_run_is_predicted_from_its_pauses(interval):
    assert tail.miss(SWEEP[interval], interval) < 0.05


def test_the_verdict_on_the_tail_fails_with_the_intervals_swapped():
    assert max(tail.miss(SWEEP[right], wrong) for right, wrong in ((5, 20), (10, 10), (20, 5))) > 0.4
    assert tail.miss(SWEEP[20], 10) > 0.2 and tail.miss(SWEEP[10], 20) > 0.2


def test_whoever_is_due_first_in_a_pause_waits_longest():
    assert tail.slope(SWEEP[5]) == pytest.approx(-1, abs=0.02)
    late = every(5, 0.3)
    held = late.latency > 5
    late.samples["appended"][held] += 2 * (pauses.since_boundary(late, lead=0.1)[held] + 0.1)
    assert tail.slope(late) == pytest.approx(1, abs=0.1), "if the last waited longest"


def test_a_pause_is_as_long_as_its_first_victim_waited_whichever_task_it_met():
    trace = every(5, 0.3)
    second = (np.arange(len(trace.samples)) % 2 == 1) & (trace.latency > 5)
    trace.samples["appended"][second] += 0.06  # every other event belongs to a task that starts again later
    assert [pause.ms for pause in pauses.at_boundaries(trace)] == pytest.approx([300] * 4, abs=3)
    assert tail.lengths(trace) == pytest.approx([360] * 4, abs=3)


def test_folded_time_lays_all_intervals_on_top_of_each_other():
    trace = SWEEP[5]
    since = pauses.since_boundary(trace, lead=1)
    late = trace.latency > 20
    assert since[late].min() == pytest.approx(0.3 / -4, abs=0.02) and since[late].max() < 0.3
    assert np.nanmax(since) < 5 and np.nanmin(since) >= -1
    assert np.isnan(since[:1_400]).all(), "before the first boundary nobody knows"


def test_calm_events_are_those_that_no_boundary_touched():
    assert tail.calm(SWEEP[5]) == pytest.approx(2, abs=0.01)
    with pytest.raises(LabError, match="no interval ended"):
        tail.calm(run(3, [], []))


def test_the_bytes_of_an_interval_are_those_of_all_its_tasks():
    files = [appeared("state", batch, 1) | {"bytes": size} for batch, size in ((0, 900), (1, 10), (1, 20), (2, 50))]
    assert checkpoint.state_bytes(run(10, [], BATCHES, [*files, appeared("offsets", 1, 1)])) == 40
    with pytest.raises(LabError, match="no interval after the first"):
        checkpoint.state_bytes(run(3, [], BATCHES[:1]))


# ---- what a boundary costs


def test_an_intervals_cost_is_what_it_takes_beyond_itself():
    phases = {"addBatch": 5_060, "walCommit": 70, "commitOffsets": 50, "queryPlanning": 30}
    progress = [report(0, -9, 9), report(1, 0, 5.22, **phases), report(2, 5.24, 5.22, **phases)]
    cost = batches.boundary_cost(run(12, [], progress), 5)
    assert {phase: round(value) for phase, value in cost.items()} == {
        "addBatch": 60,
        "walCommit": 70,
        "commitOffsets": 50,
        "queryPlanning": 30,
        "other": 20,  # the median of 10 + 20 between the two, and of 10
    }
    assert batches.log_wait(run(12, [], progress), 5) == pytest.approx(120)


def test_without_a_second_interval_there_is_nothing_to_itemise():
    with pytest.raises(LabError, match="no interval after the first"):
        batches.boundary_cost(run(3, [], [report(0, -6, 7)]), 5)


def test_a_boundary_is_drawn_in_the_order_in_which_it_happens():
    phases = {"walCommit": 70, "addBatch": 5_060, "commitOffsets": 50, "queryPlanning": 30}
    drawn = pause_bars(["run"], [run(12, [], [report(0, -9, 9), report(1, 0, 5.22, **phases)])], interval=5)
    names = [text.get_text() for text in drawn.axes[0].get_legend().get_texts()]
    assert names == ["addBatch", "walCommit", "commitOffsets", "other", "queryPlanning"]


# ---- figures and the slow store's door


@pytest.mark.parametrize("rows", [1, 3])
def test_figures_are_drawn_for_any_number_of_runs(rows):
    files = [appeared("offsets", 1, 0.1), appeared("commits", 1, 1.9), appeared("state", 2, 5.9)]
    traces = [run(10, [(1.9, 2.1)], BATCHES, files) for _ in range(rows)]
    drawn = [interval_panels(traces), file_times(traces), pause_bars(["run"] * rows, traces, interval=1)]
    drawn += [folded(traces[0], interval=2), tail_curves(range(1, rows + 1), traces)]
    for figure in drawn:
        assert as_png(figure, dpi=30).startswith(b"\x89PNG")


@pytest.mark.parametrize("delay", [-1, 5_001, 1.5, "long"])
def test_a_silly_delay_gets_a_sentence(delay):
    with pytest.raises(LabError, match="whole number of milliseconds"):
        slow_store(None, "/somewhere", delay)
