"""What a Real-Time query needs: a slot for every task, all the time; and what becomes of it if there are fewer."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from helpers.errors import LabError

SAFE = 0.7  # of what a task can do: above that, queues and recovery take long


@dataclass(frozen=True)
class Plan:
    """A query's size: its tasks, and the executors that have a slot for each."""

    partitions: int
    shuffles: tuple[int, ...]
    cores_per_executor: int
    tasks_for_rate: int | None = None  # of the source, so that none has more than its safe load

    @property
    def slots(self) -> int:
        return self.partitions + sum(self.shuffles)

    @property
    def executors(self) -> int:
        return ceil(self.slots / self.cores_per_executor)

    def with_only(self, slots: int) -> str:
        """What Spark does where there are so many slots."""
        missing = self.slots - slots
        if missing <= 0:
            return f"runs, and leaves {-missing} of {slots} slots to others"
        if self.shuffles:
            return f"refused: {missing} of {self.slots} slots are missing"
        return f"runs, and silently never reads {missing} of {self.partitions} partitions"

    def __str__(self) -> str:
        parts = " + ".join(map(str, (self.partitions, *self.shuffles)))
        lines = [f"{parts} = {self.slots} slots, {self.executors} executors of {self.cores_per_executor} cores"]
        if self.tasks_for_rate is not None:
            enough = "enough" if self.partitions >= self.tasks_for_rate else "too few"
            lines.append(f"for this rate {self.tasks_for_rate} source tasks: {self.partitions} partitions are {enough}")
        return "\n".join(lines)


def plan(
    partitions: int,
    shuffles: Sequence[int] = (),
    cores_per_executor: int = 4,
    rate: float | None = None,
    per_task: float | None = None,
) -> Plan:
    """The size of a query that reads so many partitions and has shuffles of so many tasks.

    With the `rate` that it must keep and what one task can do (`per_task`, measured): also how many source tasks.
    """
    if min(partitions, cores_per_executor, *shuffles, 10**9) < 1:
        raise LabError("partitions, cores_per_executor and every shuffle have at least 1.")
    if (rate is None) != (per_task is None) or (per_task is not None and per_task <= 0):
        raise LabError("rate= and per_task= go together: how many events a second, and how many one task can do.")
    tasks = None if rate is None or per_task is None else ceil(rate / (SAFE * per_task))
    return Plan(partitions, tuple(shuffles), cores_per_executor, tasks)
