"""The arithmetic of a run, on made-up samples whose answers are known."""

import numpy as np
import pytest

from helpers.commands.report import about
from helpers.errors import LabError
from helpers.ruler.load import SAMPLE
from helpers.ruler.provenance import provenance
from helpers.ruler.trace import Trace, measured, ratio

START = 1_800_000_000.0  # seconds since the epoch, as the probe counts
ALL_CLOSE = {"abs": 1e-3}  # a double holds such a time to about 0.0002 ms


def make(latency_ms, rate: float = 100, start: float = START, name: str = "run", seconds: float | None = None, **meta):
    """A trace of one round whose events were due at `rate` and took this long."""
    latency = np.asarray(latency_ms, dtype=float)
    samples = np.zeros(len(latency), SAMPLE)
    samples["event"] = np.arange(len(latency))
    samples["due"] = start + np.arange(len(latency)) / rate
    samples["appended"] = samples["due"] + latency / 1000
    samples["received"] = samples["appended"] + 0.002
    length = len(latency) / rate if seconds is None else seconds
    one = {"measure_from": start, "measure_to": start + length, "late_share": 0.0}
    one |= {"sent": len(latency), "lost": 0, "duplicated": 0}
    return Trace(name, samples, {"rounds": [one]} | meta)


def test_percentiles_are_those_of_the_latencies():
    trace = make(range(1, 1002))  # 1 to 1001 ms
    assert trace.p50 == pytest.approx(501, **ALL_CLOSE)
    assert trace.p99 == pytest.approx(991, **ALL_CLOSE)
    expected = {"p50": 501, "p90": 901, "p95": 951, "p99": 991, "p99.9": 1000, "max": 1001}
    assert trace.summary() == pytest.approx(expected, **ALL_CLOSE)


def test_latency_ends_at_the_broker_unless_the_clock_says_received():
    assert make([5, 7]).latency == pytest.approx([5, 7], **ALL_CLOSE)
    assert make([5, 7], clock="received").latency == pytest.approx([7, 9], **ALL_CLOSE)


def test_the_ecdf_rises_from_the_first_share_to_one():
    values, share = make([30, 10, 20, 20]).ecdf()
    assert values == pytest.approx([10, 20, 20, 30], **ALL_CLOSE)
    assert share == pytest.approx([0.25, 0.5, 0.75, 1.0])


def test_windows_show_a_pause_where_it_was():
    trace = make([5] * 200 + [500] * 100 + [5] * 100)  # 4 s at 100 events/s; the third second stalls
    begins, p50 = trace.windows(seconds=1)
    assert begins == pytest.approx([0, 1, 2, 3])
    assert p50 == pytest.approx([5, 5, 500, 5], **ALL_CLOSE)


def test_windows_can_be_shorter_and_of_another_percentile():
    begins, worst = make([1] * 49 + [9] + [1] * 50).windows(seconds=0.5, which=100)
    assert begins == pytest.approx([0, 0.5])
    assert worst == pytest.approx([9, 1], **ALL_CLOSE)


def test_rounds_follow_each_other_without_the_pause_between_them():
    joined = Trace.join([make([1] * 200), make([2] * 100, start=START + 1000)])
    assert joined.elapsed() == pytest.approx(np.arange(300) / 100, abs=1e-5)
    assert joined.windows()[1] == pytest.approx([1, 1, 2], **ALL_CLOSE)


def test_joined_rounds_add_up():
    first, second = make([1, 2], name="A"), make([3], start=START + 60)
    first.rounds[0] |= {"lost": 1, "duplicated": 4}
    second.rounds[0] |= {"lost": 2}
    joined = Trace.join([first, second])
    assert joined.name == "A"
    assert sorted(joined.latency) == pytest.approx([1, 2, 3], **ALL_CLOSE)
    assert (joined.total("sent"), joined.lost, joined.duplicated) == (3, 3, 4)
    assert len(first.rounds) == 1  # joining changes neither part


def test_the_schedule_was_kept_only_if_every_round_kept_it():
    good, bad = make([1]), make([1], start=START + 60)
    assert good.schedule_kept
    bad.rounds[0]["late_share"] = 0.02
    assert not Trace.join([good, bad]).schedule_kept


def test_the_warm_up_is_dropped_and_the_end_is_open():
    samples = make([1] * 10, rate=1).samples
    kept = measured([samples[:4], samples[4:]], {"measure_from": START + 3, "measure_to": START + 7})
    assert list(kept["event"]) == [3, 4, 5, 6]


def test_a_run_without_samples_is_an_empty_trace_not_a_crash():
    assert len(measured([], {"measure_from": START, "measure_to": START + 1})) == 0


def test_a_saved_run_comes_back_as_it_was(tmp_path):
    trace = make([3, 1, 2], name="Real-Time Mode, 5 min", clock="received", load={"rate": 100})
    again = Trace.load(trace.save(tmp_path / "runs" / "one.npz"))
    assert again.name == trace.name
    assert again.meta == trace.meta
    assert again.samples.dtype == SAMPLE
    assert np.array_equal(again.samples, trace.samples)
    assert again.p50 == trace.p50


def test_a_missing_file_is_explained(tmp_path):
    with pytest.raises(LabError, match=r"gone\.npz is not a saved run"):
        Trace.load(tmp_path / "gone.npz")


def broken_files() -> dict:
    return {
        "empty": lambda whole: b"",
        "text": lambda whole: b"p50,p99\n1.2,8.7\n",
        "cut off": lambda whole: whole[: len(whole) // 2],
        "altered inside": lambda whole: whole.replace(whole[60:90], bytes(30)),
        "a bare array": lambda whole: bare_array(),
        "another archive": lambda whole: other_archive(),
    }


def bare_array() -> bytes:
    from io import BytesIO

    np.save(file := BytesIO(), np.arange(3))
    return file.getvalue()


def other_archive() -> bytes:
    from io import BytesIO

    np.savez(file := BytesIO(), weights=np.arange(3))
    return file.getvalue()


@pytest.mark.parametrize("how", broken_files())
def test_a_broken_file_is_explained(tmp_path, how):
    path = make(np.arange(500.0)).save(tmp_path / "run.npz")
    path.write_bytes(broken_files()[how](path.read_bytes()))
    with pytest.raises(LabError, match=r"run\.npz is not a saved run"):
        Trace.load(path)


def test_without_samples_there_is_a_sentence_instead_of_a_percentile():
    empty = make([], name="silent", seconds=1)
    with pytest.raises(LabError, match="silent: no event was measured"):
        _ = empty.p50
    with pytest.raises(LabError, match="silent: no event was measured"):
        empty.summary()
    for pair in ((empty, make([1])), (make([1]), empty)):
        with pytest.raises(LabError, match="silent: no event was measured"):
            ratio(*pair)


def test_a_ratio_is_that_of_the_two_percentiles():
    slow, fast = make(np.linspace(100, 300, 1001)), make(np.linspace(1, 3, 1001))
    assert ratio(slow, fast).value == pytest.approx(100, rel=1e-3)
    assert ratio(slow, fast, which=100).value == pytest.approx(100, rel=1e-3)
    assert ratio(slow, make(np.linspace(1, 5, 1001)), which=100).value == pytest.approx(60, rel=1e-3)


def test_a_round_is_drawn_with_its_own_seconds():
    joined = Trace.join([make([1] * 200), make([2] * 150, start=START + 1000)])
    assert [[len(second) for second in seconds] for seconds in joined.by_second()] == [[100, 100], [100, 50]]


def backlog(seconds: float, grows: float, rate: int = 100) -> np.ndarray:
    """Latencies of a query that takes 5 to 50 ms, and waits `grows` seconds longer with every second."""
    n = int(seconds * rate)
    return 5 + np.arange(n) % 10 * 5 + 1000 * grows * np.arange(n) / rate


@pytest.mark.parametrize(
    ("latency", "steady"),
    [
        (backlog(6, 0), True),
        (backlog(6, 0.2), False),
        (backlog(6, -0.2) + 2000, True),  # it catches up: no backlog grows
        (np.tile(np.arange(5000, 0, -10), 2), True),  # a blocking operator: rows wait for the interval's end, again
        (np.tile(np.arange(2100, 100, -10), 3), True),  # a trigger of 2 s
        (np.r_[np.full(500, 5), np.full(100, 900)], True),  # a stall at the end
        (backlog(30, 0.06), False),  # slowly, but for long
        (backlog(6, 0.06), True),  # too little to tell
        (backlog(2, 0.9), True),  # too short to tell
    ],
)
def test_a_growing_backlog_is_told_from_pauses_batches_and_stalls(latency, steady):
    assert make(latency, rate=100).steady is steady


def test_no_ratio_is_made_of_a_run_whose_backlog_grows():
    grows, calm = make(backlog(6, 0.2), name="overloaded"), make(backlog(6, 0), name="calm")
    for pair in ((grows, calm), (calm, grows)):
        made = ratio(*pair)
        assert np.isnan(made.value) and str(made) == "no ratio: overloaded was not in a steady state, its backlog grew"
    assert grows.label == "overloaded (backlog grows)" and calm.label == "calm"
    assert "every event waited 200 ms longer with every second" in grows.note
    joined = Trace.join([calm, make(backlog(6, 0.2), start=START + 60)])
    assert not joined.steady  # one round is enough


def test_a_machine_that_stood_still_is_named_before_anything_else():
    slow = make([5.0] * 100)
    slow.rounds[0] |= {"standstill_ms": 1_400, "late_share": 0.0}
    assert not slow.spoilt and slow.note == ""
    slow.rounds[0] |= {"standstill_ms": 1_600, "late_share": 0.9}
    assert slow.spoilt and "stood still" in slow.note


def test_a_clock_that_was_set_spoils_a_run():
    run = make([5.0] * 100)
    run.rounds[0]["clock_step_ms"] = 30
    assert not run.spoilt
    run.rounds[0]["clock_step_ms"] = 3_600_000
    assert "clock was set" in run.spoilt and "clock was set" in run.note


def test_what_was_not_sent_and_what_was_counted_twice_is_said():
    run = make([5.0] * 100)
    run.rounds[0] |= {"send_errors": 7, "overcounted": 2}
    assert "did not take 7 of 100 events" in run.note and "counted 2 events more" in run.note
    assert run.duplicated == 2
    run.rounds[0]["lost"] = 3
    assert run.back == 90  # of 100: 3 lost, 7 never taken


def test_a_round_that_was_made_again_is_remembered_in_the_whole():
    rounds = [make([5.0] * 100), make([5.0] * 100, start=START + 60)]
    rounds[1].rounds[0]["redone"] = "in the first attempt the machine stood still"
    assert [one.get("redone", "") for one in Trace.join(rounds).rounds] == ["", rounds[1].rounds[0]["redone"]]


@pytest.mark.parametrize(("clock", "end"), [("appended", "broker appended"), ("received", "result was read")])
def test_a_report_names_the_clock_and_all_that_a_figure_depends_on(clock, end):
    of_spark = {"slots": 4, "collector": "PS Scavenge", "heap_mib": 1_820, "checkpoint_manager": "SomeManager"}
    said = about(make([5.0], clock=clock, backend="embedded", **provenance(), **of_spark))
    assert end in said
    for part in (provenance()["commit"], "PS Scavenge", "heap 1,820 MiB", "SomeManager", "4 slots"):
        assert part in said
