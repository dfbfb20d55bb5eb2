"""The checkpoint folder: which file appears when, and which checkpoint is the newest.

Spark keeps one file per batch in `offsets/` (how far it reads) and `commits/` (that it is done), and per
batch and task one in `state/`. `ruler.folder` notes them in the trace before it removes the folder.
"""

import json
import re
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
    batch = _committed(folder)
    if batch is None:
        return None
    ends = json.loads(_sources(folder, batch)[-1])  # {"topic": {"partition": offset}}
    end = sum(offset for partitions in ends.values() for offset in partitions.values())
    return Checkpoint(batch, (Path(folder) / "commits" / str(batch)).stat().st_mtime, end)


def starting_offsets(folder: str | Path, source: int = 0) -> str:
    """Where a query with another checkpoint has to begin to go on after this one: its option `startingOffsets`.

    That is the end of the newest *committed* batch, of its first source or another one, in the connector's form.
    """
    folder = Path(folder)
    if not (folder / "offsets").is_dir():
        raise LabError(f"{folder.name}: this is no checkpoint folder, it has no offsets/. Give a query's own folder.")
    batch = _committed(folder)
    if batch is None:
        raise LabError(
            f"{folder.name}: no batch of this query was ever committed. There is nothing to go on from: begin with "
            'startingOffsets="earliest".'
        )
    sources = _sources(folder, batch)
    if not 0 <= source < len(sources):
        raise LabError(f"source={source}: this query has {len(sources)}, counted from 0.")
    if not sources[source].startswith("{"):
        raise LabError(f"Source {source} of this query had read nothing by its last commit: begin with earliest.")
    return sources[source]


def _committed(folder: str | Path) -> int | None:
    """The newest batch in commits/."""
    done = [int(file.name) for file in (Path(folder) / "commits").glob("*") if file.name.isdecimal()]
    return max(done, default=None)


def _sources(folder: str | Path, batch: int) -> list[str]:
    """What offsets/ says of a batch, one line per source (newer logs put its name before it)."""
    lines = (Path(folder) / "offsets" / str(batch)).read_text().splitlines()[2:]
    return [re.sub(r"^\w+:(?=[{-])", "", line) for line in lines]


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


def state_bytes(trace: Trace, skip: int = 1) -> float:
    """What the median interval wrote to `state/`, all tasks together, without the first; `skip=-1`: only the last."""
    totals: list[int] = []
    for lap in trace.rounds:
        files = [file for file in lap.get("checkpoint", []) if file["kind"] == "state"]
        for batch in batches.of_round(lap, skip):
            totals.append(sum(file["bytes"] for file in files if file["batch"] == batch.number))
    if not totals:
        raise LabError(f"{trace.name}: no interval after the first ended while it was measured.")
    return float(np.median(totals))
