"""When a JVM stood still, from its own log: collections, and other moments at which all its threads had to stop."""

import re
from dataclasses import dataclass
from pathlib import Path

LINE = re.compile(r'^\[(\d+)ms\] Safepoint "(\w+)",.*?\bTotal: +(\d+) ns', re.MULTILINE)
COLLECTION = re.compile(r"Collect|GC|^[ZX](Mark|Relocate|Verify)|Shenandoah")


@dataclass(frozen=True)
class Stop:
    """All threads of a JVM stood still: from `begin` (epoch seconds), for so many `ms`, and why, in the JVM's words."""

    begin: float
    ms: float
    why: str

    @property
    def collects(self) -> bool:
        """It was for the garbage collector."""
        return COLLECTION.search(self.why) is not None


def option(file: str | Path) -> str:
    """The JVM's option that writes this log: a line when a stop is over, a few a second at most."""
    return f"-Xlog:gc*,safepoint:file={file}:timemillis:filecount=0"


def stops(log: str, since: float = 0.0, until: float = float("inf")) -> list[Stop]:
    """The stops in a log that touch a stretch of time."""
    found = []
    for at, why, nanoseconds in LINE.findall(log):
        end, seconds = int(at) / 1000, int(nanoseconds) / 1e9
        if end >= since and end - seconds <= until:
            found.append(Stop(end - seconds, seconds * 1000, why))
    return found
