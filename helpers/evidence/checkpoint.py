"""The checkpoint folder: which file appears when, and which checkpoint is the newest.

Spark keeps one file per batch in `offsets/` (how far it reads) and `commits/` (that it is done), and per
batch and task one in `state/`. `ruler.folder` notes them in the trace before it removes the folder.
"""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from helpers.errors import LabError
from helpers.evidence import batches
from helpers.ruler.trace import Trace

KINDS = ("offsets", "state", "commits")


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


@dataclass(frozen=True)
class Written:
    """A file of the checkpoint folder, and when it appeared within its batch: 0 is its start, 1 its end."""

    kind: str
    batch: int
    share: float


def written(trace: Trace, kind: str) -> list[Written]:
    """When the files of one kind appeared, batch by batch. The first batch carries the query's start: it is skipped."""
    if kind not in KINDS:
        raise LabError(f"kind={kind!r}: a checkpoint folder has 'offsets', 'commits' and 'state'.")
    found = []
    for lap in trace.rounds:
        known = {batch.number: batch for batch in batches.of_round(lap, skip=1)}
        for file in lap.get("checkpoint", []):
            batch = known.get(file["batch"])
            if file["kind"] == kind and batch is not None:
                share = (file["at"] - batch.start) / max(batch.end - batch.start, 1e-3)
                found.append(Written(kind, batch.number, share))
    if not found and kind != "state":
        raise LabError(f"{trace.name}: no batch after the first ended while it was measured, so none has {kind}.")
    return found


def typical_share(trace: Trace, kind: str) -> float:
    """Where in a batch a file of this kind appears: 0 at the start of the median batch, 1 at its end."""
    return float(np.median([file.share for file in written(trace, kind)]))


def state_bytes(trace: Trace) -> float:
    """What the median interval wrote to `state/`, all tasks together. The first interval is skipped."""
    totals: list[int] = []
    for lap in trace.rounds:
        files = [file for file in lap.get("checkpoint", []) if file["kind"] == "state"]
        for batch in batches.of_round(lap, skip=1):
            totals.append(sum(file["bytes"] for file in files if file["batch"] == batch.number))
    if not totals:
        raise LabError(f"{trace.name}: no interval after the first ended while it was measured.")
    return float(np.median(totals))
