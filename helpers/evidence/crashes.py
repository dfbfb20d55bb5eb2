"""What a crash leaves to see: the rows that came out, and how many of them came twice."""

import json
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from helpers.errors import LabError


@dataclass(frozen=True)
class Row:
    """One record of the results topic."""

    key: str
    value: str
    at: float  # when it was read
    again: bool  # it accounts for no event that an earlier row had not accounted for

    @property
    def json(self) -> dict:
        return json.loads(self.value)


@dataclass(frozen=True)
class Crash:
    """One end of a query: when it was, and what the restarted query wrote a second time."""

    trigger: dict[str, str]
    at: float
    since: float  # seconds from the last completed checkpoint to the kill
    end: int  # where that checkpoint ended: this offset is the first to be read again
    sent_since: int  # records sent between that checkpoint's end and the kill: nothing else can be repeated
    repeated: int = 0
    away: float = 0.0  # seconds from the kill to the first row after it
    how: str = "kill -9"  # or "stop()"
    uncovered: int = 0  # events past that checkpoint's end whose results were out: these must come again


def measured(crash: Crash, rows: list[Row]) -> Crash:
    """The crash with what these rows, all that came after it, show: how many came again, and when the first did."""
    return replace(crash, repeated=sum(row.again for row in rows), away=rows[0].at - crash.at if rows else 0.0)


def uncovered(rows: list[Row], end: int) -> int:
    """How many events from the offset `end` on have a result: out, but not covered by the checkpoint that ends there.

    Rows without an event's number (counts) tell nothing of that kind.
    """
    return len({number for row in rows if (number := row.json.get("event_id", -1)) >= end})


def open_window(checkpoint: str | Path, rows: list[Row], since: float) -> float:
    """The share of time in which a batch's rows are out and its commit is not: what a random kill needs to repeat rows.

    From the files in commits/ and the rows that were read, batch by batch, for what happened after `since`.
    """
    commits = sorted(file.stat().st_mtime for file in (Path(checkpoint) / "commits").glob("*") if file.name.isdecimal())
    commits = [at for at in commits if at > since]
    spans = list(pairwise(commits))
    if len(spans) < 3:
        raise LabError(f"Only {len(commits)} batches were committed since then: too few to speak of a share.")
    first_rows = [min((row.at for row in rows if begin < row.at <= end), default=end) for begin, end in spans]
    opened = sum(end - first for (_, end), first in zip(spans, first_rows, strict=True))
    return opened / (commits[-1] - commits[0])
