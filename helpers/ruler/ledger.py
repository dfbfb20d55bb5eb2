"""Which events are out and which are back: the one rule for loss and duplicates.

A result that carries `event_id` accounts for that event. A result that carries `count` (a running count
per key) accounts for every event of its key up to that count: a micro-batch writes one row per key and
batch, and each event in it is timed all the same. A row that accounts for no new event is a duplicate.
"""

from collections import deque
from contextlib import suppress

from helpers.errors import LabError


def event_number(event_id: object) -> int:
    """An event's number: its id is that number, or a run's name and the number."""
    return int(str(event_id).rsplit("-", 1)[-1])


class Ledger:
    """Told of every event that is sent and of every row that comes back; one thread each may do so."""

    def __init__(self) -> None:
        self.out: set[int] = set()
        self.rows = 0
        self.duplicated = 0
        self.unsent = 0
        self._back: set[int] = set()
        self._waiting: dict[bytes, deque[int]] = {}
        self._counted: dict[bytes, int] = {}
        self._beyond: dict[bytes, int] = {}

    @property
    def overcounted(self) -> int:
        """By how much the counts are larger than what was sent: events that a query counted twice."""
        return sum(self._beyond.values())

    def sent(self, event: int, key: bytes) -> None:
        """Say so *before* it is sent: its result may be faster than you."""
        self.out.add(event)
        self._waiting.setdefault(key, deque()).append(event)

    def failed(self, event: int, key: bytes) -> None:
        """The broker did not take this one: nobody can lose it any more."""
        if event in self.out:
            self.out.discard(event)
            with suppress(ValueError):  # a count has just accounted for it all the same
                self._waiting[key].remove(event)
            self.unsent += 1

    def returned(self, key: bytes, result: object) -> list[int]:
        """The events that this result row is the first to account for."""
        self.rows += 1
        if isinstance(result, dict) and "count" in result:
            new = self._by_count(key, int(result["count"]))
        elif isinstance(result, dict) and "event_id" in result:
            new = self._by_id(event_number(result["event_id"]))
        else:
            raise LabError(
                f"A result row has neither `event_id` nor `count`: {str(result)[:200]!r}. Without one of them nobody "
                "knows which event it belongs to: keep event_id in the result, or write a running count per key."
            )
        self.duplicated += not new
        return new

    def _by_id(self, event: int) -> list[int]:
        if event in self._back:
            return []
        self._back.add(event)
        self.out.discard(event)
        return [event]

    def _by_count(self, key: bytes, count: int) -> list[int]:
        if key not in self._waiting:
            raise LabError(f"A result has the key {key!r}, which no event had: does the query write the event's key?")
        waiting, before = self._waiting[key], self._counted.get(key, 0)
        new = [waiting.popleft() for _ in range(min(count - before, len(waiting)))]
        self._counted[key] = max(before, before + len(new))
        self._beyond[key] = max(self._beyond.get(key, 0), count - self._counted[key])
        self.out.difference_update(new)
        return new
