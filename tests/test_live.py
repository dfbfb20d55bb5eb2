"""Live figures, in a real kernel: one display that changes in place, and never disturbs a measurement."""

import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from jupyter_client.manager import start_new_kernel
from matplotlib.colors import to_hex

from helpers.figures import LiveView, live, picture
from helpers.figures.looks import look_of
from helpers.lesson import answers
from helpers.ruler import tally
from helpers.ruler.load import SAMPLE, Load
from helpers.ruler.statistics import ms
from helpers.ruler.tally import Recent, Tally
from helpers.ruler.trace import Trace, measured
from helpers.ruler.watch import Watch

ROOT = Path(__file__).resolve().parent.parent
LOAD = Load(rate=200, seconds=3, warmup=1)
BRIEF = Load(rate=100, seconds=1, warmup=0.5)  # three looks


class Replay:
    """Looks like a running probe; hands out latencies in pieces of half a second. Data to draw, no more."""

    def __init__(self, middle: float, load: Load = LOAD, seed: int = 1) -> None:
        self.load, self.samples, self._at, self.clock = load, [], 0, "appended"
        count = round(load.rate * (load.warmup + load.seconds))
        self.all = np.zeros(count, SAMPLE)
        self.all["due"] = time.time() + np.arange(count) / load.rate
        latency = np.random.default_rng(seed).lognormal(np.log(middle), 0.5, count)
        self.all["appended"] = self.all["due"] + latency / 1000
        self.all["received"] = self.all["appended"] + 0.005
        self.begun = self.all["due"][0] + load.warmup
        self.status = {"phase": "starting", "sent": 0, "out": 0, "measure_from": None}

    def advance(self) -> bool:
        """Half a second more; False when there is no more."""
        piece = self.all[self._at : self._at + self.load.rate // 2]
        self._at += len(piece)
        self.samples.append(piece)
        phase = "measuring" if self._at > self.load.rate * self.load.warmup else "warming up"
        self.status = {"phase": phase, "sent": self._at, "out": 2, "measure_from": self.begun}
        return len(piece) > 0

    def trace(self, name: str) -> Trace:
        one = {"measure_from": self.begun, "measure_to": self.begun + self.load.seconds, "sent": self._at, "lost": 0}
        one["late_share"] = 0.0
        return Trace(name, measured(self.samples, one), {"rounds": [one]})


def watch_run(view: Watch, name: str, middle: float, fails: bool = False, load: Load = LOAD, seed: int = 1) -> Trace:
    """What `experiment` does with a watch, without broker and Spark."""
    probe = Replay(middle, load, seed)
    view.begin(name, load)
    while probe.advance():
        view.look(probe)
    trace = probe.trace(name)
    view.end(None if fails else trace)
    return trace


# -- in a real kernel


@pytest.fixture(scope="module")
def run_cell():
    """Run a cell in a kernel; get what it sent to the notebook."""
    manager, client = start_new_kernel(kernel_name="python3", cwd=str(ROOT))

    def run(code: str) -> list[dict]:
        sent: list[dict] = []
        reply = client.execute_interactive(code, timeout=60, output_hook=sent.append)
        assert reply["content"]["status"] == "ok", reply["content"]
        return [one for one in sent if one["msg_type"] not in ("status", "execute_input")]

    run("import sys; sys.path.insert(0, 'tests'); from test_live import *; picture.DPI = 40")
    yield run
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def of_type(messages: list[dict], kind: str) -> list[dict]:
    return [one["content"] for one in messages if one["msg_type"] == kind]


def test_one_display_changes_in_place(run_cell):
    messages = run_cell("view = LiveView(); _ = watch_run(view, 'micro-batch', 250); assert view.trouble is None")
    shown, changes = of_type(messages, "display_data"), of_type(messages, "update_display_data")
    assert len(shown) == 1
    assert len(changes) == 9, "a frame for each look and one for the end"
    assert len(messages) == 10, "nothing else: no stdout, no stderr, no clear_output"
    assert {one["transient"]["display_id"] for one in changes} == {shown[0]["transient"]["display_id"]}
    assert {one["data"]["text/plain"] for one in shown + changes} == {"<figure: live latency>"}
    assert {frozenset(one["data"]) for one in shown + changes} == {frozenset({"text/plain", "image/png"})}
    pictures = [one["data"]["image/png"] for one in shown + changes]
    assert all(one != other for one, other in pairwise(pictures))


def test_runs_in_turn_share_the_figure_of_their_cell(run_cell):
    turns = "[watch_run(view, name, ms, load=BRIEF) for name, ms in [('micro-batch', 250), ('Real-Time Mode', 2)] * 2]"
    messages = run_cell(f"view = LiveView(); _ = {turns}; assert view.trouble is None")
    assert len(of_type(messages, "display_data")) == 1
    assert len(of_type(messages, "update_display_data")) == 4 * 5 - 1, "each run begins, is looked at, and ends"


def test_another_cell_gets_a_figure_of_its_own(run_cell):
    first = run_cell("view = LiveView(); _ = watch_run(view, 'micro-batch', 250, load=BRIEF)")
    second = run_cell("_ = watch_run(view, 'Real-Time Mode', 2, load=BRIEF); assert view._names == ['Real-Time Mode']")
    ids = [of_type(one, "display_data")[0]["transient"]["display_id"] for one in (first, second)]
    assert ids[0] != ids[1]


def test_a_failing_picture_does_not_stop_the_run(run_cell):
    messages = run_cell(
        "from unittest.mock import patch\n"
        "with patch.object(picture.Picture, 'run', side_effect=RuntimeError('no ink')):\n"
        "    view = LiveView(); trace = watch_run(view, 'micro-batch', 250)\n"
        "    assert len(trace.samples) == 600 and str(view.trouble) == 'no ink'\n"
        "    watch_run(view, 'micro-batch', 250)"
    )
    said = "The figure could not be drawn to the end (no ink); the run was measured.\n"
    assert [one["text"] for one in of_type(messages, "stream")] == [said], "once, when the first run is over"
    assert len(messages) == 1


def test_a_figure_is_shown_with_a_constant_text(run_cell):
    messages = run_cell(
        "from helpers.figures import distributions, show\n"
        "probe = Replay(1)\n"
        "while probe.advance(): pass\n"
        "show(distributions([probe.trace('ruler')]))"
    )
    (shown,) = of_type(messages, "display_data")
    assert shown["data"]["text/plain"] == "<figure: latency distributions>"
    assert shown["data"]["image/png"]
    assert len(messages) == 1


def test_a_quiz_is_shown_with_folded_answers(run_cell):
    messages = run_cell("from helpers.lesson import quiz; quiz('00')")
    (shown,) = of_type(messages, "display_data")
    assert shown["data"]["text/html"].count("<details") == len(answers("00")["quiz"])
    assert answers("00")["quiz"][0]["answer"] in shown["data"]["text/plain"]


# -- outside a notebook


def test_outside_a_notebook_it_is_a_progress_bar(capsys):
    watch_run(LiveView(), "micro-batch", 250)
    said = capsys.readouterr()
    assert said.out == ""
    assert "micro-batch: 100%" in said.err


# -- what is drawn


@pytest.fixture
def view(monkeypatch) -> LiveView:
    """A live view that believes it is in a notebook and keeps its frames."""
    frames: list[bytes] = []

    def keep(self, png: bytes) -> None:
        self._handle = frames
        frames.append(png)

    monkeypatch.setattr(live, "in_notebook", lambda: True)
    monkeypatch.setattr(LiveView, "_show", keep)
    monkeypatch.setattr(picture, "DPI", 40)  # a small picture is drawn quickly
    return LiveView()


def test_the_last_frame_counts_the_whole_trace(view):
    trace = watch_run(view, "micro-batch", 250)
    assert view.trouble is None
    assert len(view._done["micro-batch"]) == len(trace.samples) == 600
    assert f"p50 {ms(trace.p50)}   p99 {ms(trace.p99)}" in view._picture.facts.get_text()


def test_a_run_is_counted_without_its_warm_up(view):
    probe = Replay(250)
    view.begin("micro-batch", LOAD)
    while probe.advance():
        view.look(probe)
    assert view.trouble is None
    assert len(view._reader.warm) == 200
    assert len(view._reader.measured) == 600


def test_rounds_of_one_run_grow_together(view):
    for name in ("micro-batch", "Real-Time Mode", "micro-batch"):
        watch_run(view, name, 20, load=BRIEF)
    assert view.trouble is None
    assert view._names == ["micro-batch", "Real-Time Mode"]
    assert {name: len(tally) for name, tally in view._done.items()} == {"micro-batch": 200, "Real-Time Mode": 100}


def test_a_failed_run_leaves_the_earlier_ones(view):
    watch_run(view, "micro-batch", 250, load=BRIEF)
    watch_run(view, "micro-batch", 250, fails=True, load=BRIEF)
    watch_run(view, "Real-Time Mode", 2, fails=True, load=BRIEF)
    assert view.trouble is None
    assert {name: len(tally) for name, tally in view._done.items()} == {"micro-batch": 100}
    assert "stopped" in view._picture.name.get_text()


def test_the_header_tells_phase_counts_and_percentiles(view):
    probe = Replay(250)
    view.begin("micro-batch", LOAD)
    for _ in range(5):
        probe.advance()
        view.look(probe)
    shown = view._picture
    assert shown.name.get_text() == "micro-batch · measuring"
    assert shown.counts.get_text() == "events: 500 sent, 498 back"
    assert [word in shown.facts.get_text() for word in ("p50", "p99", "p99.9", "max")] == [True] * 4


def test_axes_grow_while_a_slow_run_goes_on(view):
    probe = Replay(30_000)
    view.begin("micro-batch", LOAD)
    assert view._picture.shapes.get_xlim()[1] == 10_000
    probe.advance()
    view.look(probe)
    assert view.trouble is None
    assert view._picture.shapes.get_xlim()[1] == view._picture.times.get_ylim()[1] / 8 == 100_000


@pytest.mark.parametrize(
    ("round_", "words"),
    [
        ({}, "events: 1,000 sent, 997 back"),
        ({"send_errors": 7}, "events: 1,000 sent, 990 back"),
        ({"late_share": 0.2}, "events: 1,000 sent, 20% sent late, 997 back"),
    ],
)
def test_the_counts_say_what_came_back_and_what_was_sent_late(view, round_, words):
    trace = Replay(2).trace("real-time")
    trace.rounds[0] |= {"sent": 1_000, "lost": 3} | round_
    view.begin("real-time", LOAD)
    view.end(trace)
    assert view.trouble is None and view._picture.counts.get_text() == words


def test_axes_have_units(view):
    watch_run(view, "micro-batch", 250)
    assert view._picture.shapes.get_xlabel() == view._picture.times.get_ylabel() == "latency (ms, log scale)"
    assert view._picture.times.get_xlabel() == "measured time (s)"


def test_runs_have_the_colours_of_the_figures(view):
    for name in ("micro-batch", "Real-Time Mode"):
        watch_run(view, name, 20, load=BRIEF)
        assert to_hex(view._picture.edge.get_edgecolor()).upper() == look_of(name).colour


@pytest.mark.parametrize("nasty", [[], [5.0], [7.0] * 50, [-3.0, 0.0, 0.0], [1e9]])
def test_any_latency_can_be_drawn(view, nasty):
    probe = Replay(250)
    view.begin("ruler", LOAD)
    piece = np.zeros(len(nasty), SAMPLE)
    piece["due"] = probe.begun + 0.1
    piece["appended"] = piece["due"] + np.array(nasty) / 1000
    piece["received"] = time.time()
    probe.samples.append(piece)
    probe.status |= {"measure_from": probe.begun, "out": 0}
    view.look(probe)
    view.end(probe.trace("ruler"))
    assert view.trouble is None


# -- what it costs


def test_a_look_reads_only_what_is_new(view, monkeypatch):
    read: list[int] = []
    add = Tally.add
    monkeypatch.setattr(Tally, "add", lambda self, latency, *more: (read.append(len(latency)), add(self, latency)))
    probe = Replay(250, Load(rate=200, seconds=8, warmup=1))
    view.begin("micro-batch", probe.load)
    while probe.advance():
        read.clear()
        view.look(probe)
        assert sum(read) <= 100
    assert view.trouble is None


def test_a_late_frame_costs_no_more_than_an_early_one(view):
    load = Load(rate=4_000, seconds=30, warmup=0)
    probe = Replay(5, load)
    view.begin("Real-Time Mode", load)
    cost = []
    while probe.advance():
        began = time.process_time()
        view.look(probe)
        cost.append(time.process_time() - began)
    assert view.trouble is None
    assert np.median(cost[-15:]) < 2.5 * np.median(cost[5:20])


def test_a_tally_in_parts_is_the_tally_of_the_whole():
    latency = np.random.default_rng(3).lognormal(1, 1, 10_000)
    whole, parts = Tally(), Tally()
    whole.add(latency)
    for part in np.array_split(latency, 7):
        parts.add(part)
    assert np.array_equal(whole.fine, parts.fine)
    for which in (50, 99, 99.9, 100):
        assert parts.percentile(which) == pytest.approx(np.percentile(latency, which, method="nearest"), rel=0.03)


def test_what_is_recent_forgets_what_is_no_longer_shown():
    recent = Recent()
    for second in range(100):
        recent.add(np.full(10, second + 0.5), np.arange(10) + second)
    at, p50, p99 = recent.ago(100)
    assert len(at) <= tally.SPAN + 3
    assert at[-1] == -0.5
    assert p50[-1] == pytest.approx(103.5)
    assert p99[-1] == pytest.approx(np.percentile(np.arange(10) + 99, 99))


@pytest.mark.parametrize(
    "name", ["real-time", "real-time, stateful, slow", "real-time, with a name that goes on and on and on"]
)
def test_the_heading_leaves_room_for_the_percentiles(name):
    shown = picture.Picture()
    shown.still([name], {})
    shown.head(name, "warming up")
    shown.facts.set_text("p50 12,224   p99 15,345   p99.9 15,354   max 15,356 ms")
    shown.frame()
    heading, facts = (one.get_window_extent() for one in (shown.name, shown.facts))
    assert heading.x1 < facts.x0
    assert shown.name.get_size() >= 8, "it can still be read"


def test_a_run_made_again_replaces_the_one_in_which_the_machine_froze(view):
    good = watch_run(view, "real-time", 2)
    frozen = Replay(900)
    view.begin("real-time", LOAD)
    while frozen.advance():
        view.look(frozen)
    trace = frozen.trace("real-time")
    trace.rounds[0]["standstill_ms"] = 15_000
    view.end(trace)
    assert trace.spoilt and len(view._done["real-time"]) > len(good.samples)
    watch_run(view, "real-time", 2, seed=2)
    assert view.trouble is None
    assert view._done["real-time"].percentile(99.9) < 100, "nothing of the frozen run is left"
    assert len(view._done["real-time"]) == pytest.approx(2 * len(good.samples), abs=4)
