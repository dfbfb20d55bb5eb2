"""What a crash leaves to see: the rows that came out, and how many of them came twice."""

import json
from dataclasses import dataclass, replace


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
    """One kill: when it was, and what the restarted query wrote a second time."""

    trigger: dict[str, str]
    at: float
    since: float  # seconds from the last completed checkpoint to the kill
    end: int  # where that checkpoint ended: this offset is the first to be read again
    sent_since: int  # records sent between that checkpoint's end and the kill: nothing else can be repeated
    repeated: int = 0
    away: float = 0.0  # seconds from the kill to the first row after it


def measured(crash: Crash, rows: list[Row]) -> Crash:
    """The crash with what these rows, all that came after it, show: how many came again, and when the first did."""
    return replace(crash, repeated=sum(row.again for row in rows), away=rows[0].at - crash.at if rows else 0.0)
