"""When each stage and task of a query ran, as Spark's own web page tells it (its REST API)."""

import json
import re
import time
import urllib.request
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from urllib.error import URLError

from pyspark.sql import SparkSession

from helpers.errors import LabError
from helpers.ruler.load import Load
from helpers.ruler.probe import Probe
from helpers.ruler.trace import Trace
from helpers.ruler.watch import Watch

SECONDS = 30  # Spark's page is slow the first time somebody asks


@dataclass(frozen=True)
class Task:
    """One task: it holds one slot from `begin` to `end` (seconds since 1970). `state` is Spark's word."""

    stage: int
    index: int
    state: str
    begin: float
    end: float
    slot: int = 0  # Spark does not tell which: the first that was free, counted from 0
    cpu_ms: float = 0.0  # known when the task has ended, like the rest
    rows_read: int = 0
    shuffle_read: int = 0  # bytes
    shuffle_written: int = 0


@dataclass(frozen=True)
class Stage:
    """One stage. `begin` is None while it waits, `end` while it runs; `role` is its place in its batch: 0, 1, …"""

    id: int
    run: str
    batch: int
    role: int
    state: str
    begin: float | None
    end: float | None
    tasks: tuple[Task, ...] = ()


@dataclass(frozen=True)
class Timeline:
    """The stages of one run, oldest first, and how many slots there were."""

    name: str
    slots: int
    stages: tuple[Stage, ...]

    @property
    def tasks(self) -> list[Task]:
        return [task for stage in self.stages for task in stage.tasks]

    @property
    def active(self) -> list[Stage]:
        """The stages that were running when this was read."""
        return [stage for stage in self.stages if stage.state == "ACTIVE"]

    @property
    def slots_held(self) -> int:
        """How many slots were taken when this was read."""
        return sum(task.state == "RUNNING" for stage in self.active for task in stage.tasks)

    def stages_at_once(self) -> int:
        """The most stages that were under way at one moment."""
        return most_at_once((stage.begin, stage.end) for stage in self.stages if stage.begin is not None)

    def slots_at_once(self) -> int:
        """The most slots that were taken at one moment."""
        return most_at_once((task.begin, task.end) for task in self.tasks)

    def tasks_by_batch(self) -> dict[int, int]:
        """How many tasks each batch started."""
        found = {stage.batch: 0 for stage in self.stages}
        for stage in self.stages:
            found[stage.batch] += len(stage.tasks)
        return found

    def cpu_ms(self, role: int) -> dict[int, float]:
        """CPU time by task number, of the stages with this place in their batch; of tasks that have ended."""
        found: dict[int, float] = defaultdict(float)
        for task in [task for stage in self.stages if stage.role == role for task in stage.tasks]:
            found[task.index] += task.cpu_ms
        return dict(found)


def read(spark: SparkSession, name: str = "", after: int = -1) -> Timeline:
    """The timeline of the streaming query that ran last: of its stages, those with an id above `after`.

    Spark forgets old stages (spark.ui.retainedStages) and old tasks: what it has forgotten is not in here.
    """
    answer = [stage for stage in ask(spark, "stages?details=true") if stage["stageId"] > after]
    return parse(answer, name, spark.sparkContext.defaultParallelism, time.time())


def newest(spark: SparkSession) -> int:
    """The id of the last stage that Spark has planned so far; -1 before the first."""
    return max((stage["stageId"] for stage in ask(spark, "stages")), default=-1)


class StageRecorder(Watch):
    """Reads Spark's page while a run goes on, about once a second, and keeps what it said last."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._after = newest(spark)
        self._looks = 0
        self.timeline = Timeline("", 0, ())
        self.most_active = 0  # stages that Spark's page called ACTIVE at one reading

    def begin(self, setup_name: str, load: Load) -> None:
        self._name = setup_name
        self._read()

    def look(self, probe: Probe) -> None:
        self._looks += 1
        if self._looks % 2 == 0:
            self._read()

    def end(self, trace: Trace | None) -> None:
        self._read()

    def _read(self) -> None:
        self.timeline = read(self._spark, self._name, self._after)
        self.most_active = max(self.most_active, len(self.timeline.active))


def parse(answer: list[dict], name: str, slots: int, now: float) -> Timeline:
    """Spark's answer as a timeline of its newest query; a task that still runs ends `now`."""
    found = sorted((_stage(entry, now) for entry in answer), key=lambda stage: stage.id)
    streaming = [stage.run for stage in found if stage.run]
    found = [stage for stage in found if stage.run and stage.run == streaming[-1]]
    roles: dict[int, int] = {}
    for place, stage in enumerate(found):
        role = roles[stage.batch] = roles.get(stage.batch, -1) + 1
        found[place] = replace(stage, role=role)
    lanes = _in_slots(task for stage in found for task in stage.tasks)
    return Timeline(name, slots, tuple(replace(stage, tasks=tuple(lanes[stage.id])) for stage in found))


def most_at_once(intervals: Iterable[tuple[float, float | None]]) -> int:
    """The largest number of intervals that cover one moment. An end of None is: not yet."""
    moments = []
    for begin, end in intervals:
        moments += [(begin, 1), (float("inf") if end is None else end, -1)]
    now = most = 0
    for _, change in sorted(moments):  # an end comes before a beginning at the same moment
        now += change
        most = max(most, now)
    return most


def ask(spark: SparkSession, what: str) -> list[dict]:
    """What Spark's page answers to programs: "jobs", "stages", …"""
    page, app = spark.sparkContext.uiWebUrl, spark.sparkContext.applicationId
    if page is None:
        raise LabError("Spark's web page is switched off (spark.ui.enabled), and only it knows when stages ran.")
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # no proxy knows this machine's Spark
    try:
        with direct.open(f"{page}/api/v1/applications/{app}/{what}", timeout=SECONDS) as answer:
            return json.load(answer)
    except (URLError, TimeoutError) as problem:
        raise LabError(f"Spark's web page at {page} does not answer: {problem}. Does Spark still run?") from problem


def _stage(entry: dict, now: float) -> Stage:
    about = entry.get("description") or ""
    run, batch = re.search(r"runId = (\S+)", about), re.search(r"batch = (\d+)", about)
    stamps = (entry.get("submissionTime"), entry.get("completionTime"))
    begin, end = (_seconds(stamp) if stamp else None for stamp in stamps)
    listed = [task for task in (entry.get("tasks") or {}).values() if "launchTime" in task]
    tasks = [_task(entry["stageId"], task, end or now) for task in listed]
    number = int(batch[1]) if batch else -1
    return Stage(entry["stageId"], run[1] if run else "", number, 0, entry["status"], begin, end, tuple(tasks))


def _task(stage: int, entry: dict, stage_end: float) -> Task:
    begin = _seconds(entry["launchTime"])
    runs = entry["status"] == "RUNNING"  # then `duration` is as old as its last sign of life
    end = stage_end if runs else begin + entry.get("duration", 0) / 1000
    cost = entry.get("taskMetrics") or {}
    read, written = cost.get("shuffleReadMetrics", {}), cost.get("shuffleWriteMetrics", {})
    return Task(
        stage,
        entry["index"],
        entry["status"],
        begin,
        max(begin, end),
        cpu_ms=cost.get("executorCpuTime", 0) / 1e6,
        rows_read=cost.get("inputMetrics", {}).get("recordsRead", 0),
        shuffle_read=read.get("localBytesRead", 0) + read.get("remoteBytesRead", 0),
        shuffle_written=written.get("bytesWritten", 0),
    )


def _in_slots(tasks: Iterable[Task]) -> dict[int, list[Task]]:
    """Every task in the first slot that was free when it began, by stage."""
    free: list[float] = []  # when each slot becomes free
    placed: dict[int, list[Task]] = defaultdict(list)
    for task in sorted(tasks, key=lambda task: (task.begin, task.stage, task.index)):
        slot = next((number for number, at in enumerate(free) if at <= task.begin), len(free))
        free[slot : slot + 1] = [task.end]
        placed[task.stage].append(replace(task, slot=slot))
    return placed


def _seconds(text: str) -> float:
    """Spark writes 2026-11-16T06:24:59.815GMT."""
    return datetime.fromisoformat(text.replace("GMT", "+00:00")).timestamp()
