"""The checkpoint folder and what it costs: which file appears when, and for how long the results stop meanwhile.

Spark keeps one file per batch in `offsets/` (how far it reads) and `commits/` (that it is done), and per
batch and task one in `state/`. `experiment.measure` notes them in the trace before it removes the folder.
"""

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

import numpy as np

from helpers.errors import LabError
from helpers.evidence.batches import began
from helpers.ruler.trace import Trace

LOGS = re.compile(r"(offsets|commits)/(\d+)")
STATE = re.compile(r"(state)/\d+/\d+/(?:[^/]+/)?(\d+)(?:_[\w-]+)?\.(?:changelog|zip|delta|snapshot)")
NOTICEABLE_MS = 50.0


def files_of(folder: str | Path) -> list[dict]:
    """The log and state files of a checkpoint folder: `kind`, `batch`, `file`, `bytes`, and `at`, when it appeared.

    That is the time of its last change of name (ctime): Spark writes a file under another name and renames it.
    """
    found = []
    for path in sorted(Path(folder).rglob("*")):
        name = path.relative_to(folder).as_posix()
        match = LOGS.fullmatch(name) or STATE.fullmatch(name)
        if match:
            batch = int(match[2]) - (match[1] == "state")  # a batch leaves the state's next version
            with suppress(FileNotFoundError):  # Spark removes old files while the query runs
                stat = path.stat()
                file = {"kind": match[1], "batch": batch, "file": name, "bytes": stat.st_size, "at": stat.st_ctime}
                found.append(file)
    return found


@dataclass(frozen=True)
class Checkpoint:
    """The newest interval that a query has finished: its number, when it was committed, and where it ended."""

    batch: int
    at: float
    end: int  # records of the events topic before this offset will not be read again


def last_checkpoint(folder: str | Path) -> Checkpoint | None:
    """The newest batch in commits/, with its end offset from offsets/. None if no interval has ended yet."""
    done = [int(file.name) for file in (Path(folder) / "commits").glob("*") if file.name.isdecimal()]
    if not done:
        return None
    batch = max(done)
    last_line = (Path(folder) / "offsets" / str(batch)).read_text().splitlines()[-1]
    ends = json.loads(last_line)  # {"topic": {"partition": offset}}
    end = sum(offset for partitions in ends.values() for offset in partitions.values())
    return Checkpoint(batch, (Path(folder) / "commits" / str(batch)).stat().st_mtime, end)


# -- files and batches


@dataclass(frozen=True)
class Batch:
    """One batch (in Real-Time Mode: one interval) as Spark reports it when it is over. Times are epoch seconds."""

    number: int
    start: float
    end: float
    ms: dict[str, float]


def batches_of(one: dict) -> list[Batch]:
    """The finished batches of one round."""
    found = []
    for report in one.get("progress", []):
        start = began(report)
        found.append(Batch(report["batch"], start, start + report["ms"]["triggerExecution"] / 1000, report["ms"]))
    return found


@dataclass(frozen=True)
class Written:
    """A file of the checkpoint folder, and when it appeared within its batch: 0 is its start, 1 its end."""

    kind: str
    batch: int
    after_start_ms: float
    after_end_ms: float
    share: float


def written(trace: Trace, kind: str, skip: int = 1) -> list[Written]:
    """When the files of one kind appeared, batch by batch; the first ones carry the query's start and are skipped."""
    if kind not in ("offsets", "commits", "state"):
        raise LabError(f"kind={kind!r}: a checkpoint folder has 'offsets', 'commits' and 'state'.")
    found = []
    for one in trace.rounds:
        batches = {batch.number: batch for batch in batches_of(one)[skip:]}
        for file in one.get("checkpoint", []):
            batch = batches.get(file["batch"])
            if file["kind"] == kind and batch is not None:
                since, whole = file["at"] - batch.start, batch.end - batch.start
                found.append(
                    Written(kind, batch.number, since * 1000, (file["at"] - batch.end) * 1000, since / max(whole, 1e-3))
                )
    if not found and kind != "state":
        raise LabError(f"{trace.name}: no batch after the first ended while it was measured, so none has {kind}.")
    return found


def typical_share(trace: Trace, kind: str) -> float:
    """Where in a batch a file of this kind appears: 0 at the start of the median batch, 1 at its end."""
    return float(np.median([one.share for one in written(trace, kind)]))


# -- boundaries and pauses


@dataclass(frozen=True)
class Pause:
    """A stretch without results: from `at` (measured seconds), `ms` long; `batch` is the one that ended in it."""

    at: float
    ms: float
    batch: int | None


def boundaries(trace: Trace) -> list[Pause]:
    """Every batch that ended in the measured time, with the pause around its end."""
    return [pause for gaps, ends in _rounds(trace) for pause in _at_ends(gaps, ends)]


def boundary_times(trace: Trace) -> list[float]:
    """When a batch ended, in measured seconds."""
    return [at for _, ends in _rounds(trace) for at in ends.values()]


def pauses(trace: Trace, over_ms: float = NOTICEABLE_MS) -> list[Pause]:
    """Every stretch of more than `over_ms` without a result, longest first; outside a boundary its batch is None."""
    usual = 1000 / trace.meta.get("load", {}).get("rate", 1000)
    if over_ms < 2 * usual:
        raise LabError(
            f"over_ms={over_ms}: at this rate results are {usual:,.0f} ms apart anyway; ask for longer ones."
        )
    found = []
    for gaps, ends in _rounds(trace):
        matched = {pause.at: pause for pause in _at_ends(gaps, ends)}
        found += [matched.get(at, Pause(float(at), float(ms), None)) for at, ms in gaps]
    return sorted((pause for pause in found if pause.ms > over_ms), key=lambda pause: -pause.ms)


def _rounds(trace: Trace) -> Iterator[tuple[np.ndarray, dict[int, float]]]:
    """Per round: every gap between two results as (begin, milliseconds), and when each batch ended."""
    before = 0.0
    for one in trace.rounds:
        begin, end = one["measure_from"], one["measure_to"]
        inside = (trace.samples["due"] >= begin) & (trace.samples["due"] < end)
        times = np.unique(trace.samples[trace.clock][inside]) - begin + before
        ends = {batch.number: batch.end - begin + before for batch in batches_of(one) if begin <= batch.end < end}
        yield np.column_stack([times[:-1], np.diff(times) * 1000]), ends
        before += end - begin


def _at_ends(gaps: np.ndarray, ends: dict[int, float]) -> list[Pause]:
    """The gap that contains each batch's end: no task runs then, so no result can come."""
    found = []
    for batch, at in ends.items():
        number = int(np.searchsorted(gaps[:, 0], at, side="right")) - 1
        begin, ms = gaps[number] if number >= 0 else (at, 0.0)
        if begin <= at < begin + ms / 1000:  # else it ended before the first result or after the last
            found.append(Pause(float(begin), float(ms), batch))
    return found


def calmest(trace: Trace, seconds: float = 6.0, which: float = 99, step: float = 0.5) -> float:
    """A percentile (ms) in the calmest stretch of a run: a busy neighbour can make others worse, but not this one.

    Choose `seconds` longer than the interval, and no stretch is without its boundary.
    """
    elapsed, latency = trace.elapsed(), trace.latency
    last = sum(one["measure_to"] - one["measure_from"] for one in trace.rounds) - seconds
    if last < 0 or not len(latency):
        raise LabError(f"{trace.name}: it was measured for less than {seconds:g} s, so there is no such stretch.")
    stretches = [latency[(elapsed >= at) & (elapsed < at + seconds)] for at in np.arange(0, last + 1e-9, step)]
    return float(min(np.percentile(one, which) for one in stretches if len(one)))


# -- what a boundary costs


def boundary_cost(trace: Trace, interval: float) -> dict[str, float]:
    """Median milliseconds that an interval of `interval` seconds takes beyond itself, by phase of `durationMs`.

    `addBatch` is what it took longer than the interval (ending tasks, starting new ones), and `other` has the
    time between the end of one interval and the start of the next.
    """
    costs = []
    for one in trace.rounds:
        batches = batches_of(one)[1:]  # the first carries the query's start
        for batch, after in zip_longest(batches, batches[1:]):
            between = (after.start - batch.end) * 1000 if after else 0.0
            cost = {phase: value for phase, value in batch.ms.items() if phase != "triggerExecution"}
            rest = max(0.0, batch.ms["triggerExecution"] - sum(cost.values()))
            cost["addBatch"] = max(0.0, cost.get("addBatch", 0) - interval * 1000)
            costs.append(cost | {"other": rest + max(0.0, between)})
    if not costs:
        raise LabError(f"{trace.name}: no interval after the first one ended, so there is none to itemise.")
    return {phase: float(np.median([cost.get(phase, 0) for cost in costs])) for phase in costs[-1]}


def log_wait(trace: Trace, interval: float) -> float:
    """Milliseconds of the median interval in which the query waited for its two log files."""
    cost = boundary_cost(trace, interval)
    return cost.get("walCommit", 0.0) + cost.get("commitOffsets", 0.0)


def replayed(rate: float, interval: float) -> float:
    """Events that are processed again in the worst case: a crash just before an interval's end."""
    return rate * interval
