"""Stages and tasks from Spark's page: read right, whatever is missing, and drawn so that one can read them."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from test_figures import MICRO, REAL, trace_of, words

from helpers.errors import LabError
from helpers.evidence import refusal, stages
from helpers.evidence.calibrate import rounds_for
from helpers.evidence.keys import by_task
from helpers.evidence.shuffle_files import shuffle_files
from helpers.figures import LiveFiles, LiveGantt, gantt, live
from helpers.figures import stages as drawing
from helpers.figures.stages import ROLES
from helpers.ruler.load import Load

RUN = "7e8c2888-4b6c-407a-98f2-67a4440adf4a"
NOW = 1_000.0


def at(seconds: float) -> str:
    """A time as Spark writes it, so many seconds into the day."""
    return f"1970-01-01T00:{int(seconds) // 60:02d}:{seconds % 60:06.3f}GMT"


def task(index: int, begin: float, seconds: float, state: str = "SUCCESS", **metrics) -> dict:
    return {
        "index": index,
        "status": state,
        "launchTime": at(begin),
        "duration": seconds * 1000,
        "taskMetrics": metrics,
    }


def stage(number: int, batch: int, begin: float | None, end: float | None, *tasks: dict, run=RUN, **more) -> dict:
    answer = {
        "stageId": number,
        "status": "COMPLETE" if end else "ACTIVE" if begin else "PENDING",
        "description": f"\nid = x\nrunId = {run}\nbatch = {batch}",
        "tasks": {str(place): one for place, one in enumerate(tasks)},
    }
    answer |= {"submissionTime": at(begin)} if begin is not None else {}
    answer |= {"completionTime": at(end)} if end is not None else {}
    return answer | more


ONE_AFTER_THE_OTHER = [
    stage(0, 0, 1.0, 2.0, task(0, 1.1, 0.9)),
    stage(1, 0, 2.0, 3.0, task(0, 2.1, 0.8), task(1, 2.1, 0.9)),
    stage(2, 1, 3.0, 4.0, task(0, 3.1, 0.9)),
    stage(3, 1, 4.0, 5.0, task(0, 4.1, 0.8), task(1, 4.1, 0.9)),
]
TOGETHER = [
    stage(0, 0, 1.0, None, task(0, 1.1, 0.5, "RUNNING")),
    stage(1, 0, 1.0, None, task(0, 1.2, 0.5, "RUNNING"), task(1, 1.2, 0.5, "RUNNING")),
]


def read(answer: list[dict], slots: int = 4) -> stages.Timeline:
    return stages.parse(answer, "micro-batch", slots, NOW)


# -- reading


def test_stages_that_take_turns_are_never_at_once():
    timeline = read(ONE_AFTER_THE_OTHER)
    assert timeline.stages_at_once() == 1, "one ends in the very millisecond in which the next begins"
    assert timeline.slots_at_once() == 2
    assert timeline.active == [] and timeline.slots_held == 0


def test_stages_of_a_pipelined_group_are_at_once_and_hold_their_slots():
    timeline = read(TOGETHER)
    assert timeline.stages_at_once() == 2
    assert timeline.slots_at_once() == timeline.slots_held == 3
    assert len(timeline.active) == 2


def test_a_stage_knows_its_batch_and_its_place_in_it():
    places = [(one.batch, one.role) for one in read(ONE_AFTER_THE_OTHER[::-1]).stages]
    assert places == [(0, 0), (0, 1), (1, 0), (1, 1)]


def test_tasks_are_counted_by_batch():
    assert read(ONE_AFTER_THE_OTHER).tasks_by_batch() == {0: 3, 1: 3}
    assert read(TOGETHER).tasks_by_batch() == {0: 3}


def test_tasks_are_in_different_slots_while_they_overlap_and_a_free_slot_is_used_again():
    timeline = read(ONE_AFTER_THE_OTHER)
    assert [one.slot for one in timeline.tasks] == [0, 0, 1, 0, 0, 1]
    assert [one.slot for one in read(TOGETHER).tasks] == [0, 1, 2]


def test_a_task_that_runs_lasts_until_now_whatever_its_last_sign_of_life_said():
    assert {one.end for one in read(TOGETHER).tasks} == {NOW}


def test_a_task_that_its_stopped_stage_left_running_ends_with_it():
    (one,) = read([stage(0, 0, 1.0, 9.0, task(0, 1.1, 0.5, "RUNNING"))]).tasks
    assert one.end == 9.0


def test_what_has_not_started_or_was_forgotten_is_no_trouble():
    waiting = stage(5, 2, None, None)
    forgotten = {**stage(6, 2, 5.0, 6.0), "tasks": None}
    timeline = read([*ONE_AFTER_THE_OTHER, waiting, forgotten])
    assert [one.begin for one in timeline.stages][-2:] == [None, 5.0]
    assert timeline.stages_at_once() == 1
    assert read([]).stages == () and read([]).stages_at_once() == 0


def test_only_the_newest_query_counts():
    other = stage(4, 0, 6.0, 7.0, task(0, 6.0, 1.0), run="another")
    assert [one.id for one in read([*ONE_AFTER_THE_OTHER, other]).stages] == [4]


@pytest.mark.parametrize("description", [None, "collect at <stdin>:1"])
def test_a_job_of_no_streaming_query_does_not_count(description):
    job = {**stage(4, 0, 6.0, 7.0, task(0, 6.0, 1.0)), "description": description}
    assert [one.id for one in read([*ONE_AFTER_THE_OTHER, job]).stages] == [0, 1, 2, 3]
    assert read([job]).stages == ()


def test_what_a_task_did_is_kept():
    metrics = {
        "executorCpuTime": 250_000_000,
        "inputMetrics": {"recordsRead": 7},
        "shuffleReadMetrics": {"localBytesRead": 30, "remoteBytesRead": 12},
        "shuffleWriteMetrics": {"bytesWritten": 9},
    }
    (one,) = read([stage(0, 0, 1.0, 2.0, task(0, 1.0, 1.0, **metrics))]).tasks
    assert (one.cpu_ms, one.rows_read, one.shuffle_read, one.shuffle_written) == (250.0, 7, 42, 9)


def test_cpu_time_is_added_up_by_task_of_the_same_role():
    busy = {"executorCpuTime": 1_000_000}
    batches = [
        stage(2 * n + role, n, 1.0, 2.0, task(0, 1.0, 1.0, **busy), task(1, 1.0, 1.0))
        for n in (0, 1)
        for role in (0, 1)
    ]
    assert read(batches).cpu_ms(role=1) == {0: 2.0, 1: 0.0}


def test_no_page_to_ask_gets_a_sentence(closed_port):
    def spark(page):
        return SimpleNamespace(sparkContext=SimpleNamespace(uiWebUrl=page, applicationId="local-1"))

    with pytest.raises(LabError, match="switched off"):
        stages.read(spark(None))
    with pytest.raises(LabError, match="does not answer"):
        stages.read(spark(f"http://127.0.0.1:{closed_port}"))


def test_a_proxy_is_not_asked_for_what_this_machine_serves(page, closed_port, monkeypatch):
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{closed_port}")
    monkeypatch.setenv("no_proxy", "")
    page.answer = TOGETHER
    assert stages.newest(page.spark) == 1


# -- drawing


@pytest.mark.parametrize("answer", [ONE_AFTER_THE_OTHER, TOGETHER, []], ids=["in turn", "together", "nothing"])
def test_a_gantt_is_drawn_and_can_be_read(answer):
    figure = gantt([read(answer), read(TOGETHER)], [MICRO, REAL], seconds=5)
    assert min(text.get_fontsize() for text in words(figure)) >= 13
    assert np.asarray(figure.canvas.buffer_rgba()).std() > 5, "the picture is blank"
    labels = {label for ax in figure.axes for label in (ax.get_xlabel(), ax.get_ylabel()) if label}
    assert labels == {"time (s)", "slot", "latency (ms, log scale)", "events"}


def test_bars_say_their_stage_by_light_and_dark_too():
    light, dark = (np.dot(np.array(to_rgb(colour)), [0.3, 0.6, 0.1]) for colour in ROLES[:2])
    assert light - dark > 0.4
    bars = [bar.get_facecolor() for bar in gantt([read(ONE_AFTER_THE_OTHER)], seconds=5).axes[0].patches]
    assert len(set(bars)) == 2


# -- collecting, whatever becomes of the picture


class Page:
    """What Spark's page says, from a real server: `answer` can be changed, and None is an error."""

    def __init__(self, url: str) -> None:
        self.answer: list[dict] | None = []
        self.spark = SimpleNamespace(
            sparkContext=SimpleNamespace(uiWebUrl=url, applicationId="local-1", defaultParallelism=4)
        )
        self.probe = SimpleNamespace(status={"phase": "measuring", "measure_from": None}, load=Load())

    def run(self, watch: LiveGantt, *answers: list[dict] | None) -> None:
        """What `experiment` does with a watch, while the page gives these answers for a second each."""
        watch.begin("micro-batch", self.probe.load)
        for self.answer in answers:
            watch.look(self.probe)
            watch.look(self.probe)
        watch.end(None)


@pytest.fixture
def page() -> Iterator[Page]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(500 if page.answer is None else 200)
            self.end_headers()
            self.wfile.write(json.dumps(page.answer).encode())

        def log_message(self, format: str, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        page = Page(f"http://127.0.0.1:{server.server_port}")
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield page
        server.shutdown()


def seen(watch: LiveGantt) -> tuple[str, int, int]:
    return watch.timeline.name, len(watch.timeline.stages), watch.most_active


def test_stages_are_collected_where_there_is_no_notebook(page, capsys):
    watch = LiveGantt(page.spark)
    page.run(watch, TOGETHER, ONE_AFTER_THE_OTHER)
    assert seen(watch) == ("micro-batch", 4, 2), "the last answer, and two ACTIVE in the one before"
    assert capsys.readouterr().out == ""


def test_stages_are_collected_though_they_cannot_be_drawn_and_it_is_said_once(page, capsys, monkeypatch):
    def no_ink(*_: object, **__: object) -> None:
        raise RuntimeError("no ink")

    monkeypatch.setattr(live, "in_notebook", lambda: True)
    monkeypatch.setattr(drawing, "gantt", no_ink)
    watch = LiveGantt(page.spark)
    page.run(watch, TOGETHER, ONE_AFTER_THE_OTHER)
    assert seen(watch) == ("micro-batch", 4, 2)
    page.run(watch, ONE_AFTER_THE_OTHER)
    said = "The figure could not be drawn to the end (no ink); the run was measured.\n"
    assert capsys.readouterr().out == said


def test_a_page_that_does_not_answer_stops_no_run_and_the_next_look_asks_again(page, capsys):
    watch = LiveGantt(page.spark)
    page.run(watch, TOGETHER, None, ONE_AFTER_THE_OTHER)
    assert seen(watch) == ("micro-batch", 4, 2)
    assert capsys.readouterr().out.startswith("Not everything beside the run could be noted (Spark's web page")


def test_a_live_gantt_is_drawn_about_once_a_second(page, monkeypatch):
    shown: list[bytes] = []
    monkeypatch.setattr(live, "in_notebook", lambda: True)
    monkeypatch.setattr(LiveGantt, "_show", lambda self, png: shown.append(png))
    monkeypatch.setattr(drawing, "DPI", 30)
    watch = LiveGantt(page.spark)
    page.run(watch, TOGETHER, ONE_AFTER_THE_OTHER)
    assert watch.trouble is None
    assert len(shown) == 1 + 2 + 1, "at the start, after every second look, at the end"


# -- shuffle files


def test_shuffle_files_are_counted_per_run_even_if_spark_deletes_them_meanwhile(tmp_path, capsys):
    spark = SimpleNamespace(conf={"spark.local.dir": str(tmp_path)})
    folder = tmp_path / "blockmgr-1" / "0c"
    folder.mkdir(parents=True)
    (folder / "shuffle_0_0_0.data").write_bytes(b"old")
    (folder / "temp_shuffle_x").write_bytes(b"not yet one")
    watch, load = LiveFiles(spark), SimpleNamespace(warmup=1, seconds=1)
    probe = SimpleNamespace(status={"phase": "measuring", "measure_from": None}, load=load)
    watch.begin("micro-batch", load)
    (folder / "shuffle_1_0_0.data").write_bytes(b"12345")
    watch.look(probe)
    (folder / "shuffle_1_0_0.data").unlink()
    (folder / "shuffle_2_0_0.index").write_bytes(b"123")
    watch.end(None)
    assert watch.written == {"micro-batch": {"shuffle_1_0_0.data": 5, "shuffle_2_0_0.index": 3}}
    assert set(shuffle_files(spark)) == {"shuffle_0_0_0.data", "shuffle_2_0_0.index"}
    assert any("2 files" in text.get_text() for text in words(watch.figure()))


# -- refusals


def test_a_refusal_is_sparks_condition_and_its_sentences():
    said = "[STREAMING_REAL_TIME_MODE.SOME_LIMIT] It cannot. Do that. SQLSTATE: 0A000\n=== Streaming Query ===\nplan"
    refused = refusal.parse(RuntimeError(said))
    assert refused.condition == "STREAMING_REAL_TIME_MODE.SOME_LIMIT"
    assert str(refused) == "[STREAMING_REAL_TIME_MODE.SOME_LIMIT] It cannot. Do that."


def test_what_is_no_refusal_is_an_error():
    with pytest.raises(LabError, match="Spark stopped the query: Job aborted"):
        refusal.parse(RuntimeError("Job aborted due to stage failure\nmore"))


# -- work and keys


def test_nothing_to_split_and_silly_work_get_a_sentence():
    with pytest.raises(LabError, match="nothing to split"):
        by_task(trace_of("real-time", []), None, 2)
    with pytest.raises(LabError, match="at most 1,000 milliseconds"):
        rounds_for(None, None, ms=0)
