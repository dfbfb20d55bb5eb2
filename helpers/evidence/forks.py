"""Which programs Spark's JVM starts while it works, from the JVM's own flight recorder.

The JVM notes every process that it starts (`jdk.ProcessStart`), with the command and with the stack of the thread that
wanted it. Spark itself wants none: Hadoop's local file system does, for `readlink` and `chmod`.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

from pyspark.sql import SparkSession

from helpers.engines.scratch import run_dir

EVENT = "jdk.ProcessStart"
HADOOP = "org.apache.hadoop."


@dataclass(frozen=True)
class Fork:
    """One process that the JVM started: the program, and the method of Hadoop's that asked for it first."""

    program: str
    asked_by: str


@dataclass
class Forks:
    """What was started within a `with recorded(spark)`; empty until that ends."""

    found: list[Fork] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.found)

    def programs(self) -> dict[str, int]:
        """How often each program was started."""
        return dict(Counter(fork.program for fork in self.found).most_common())

    def askers(self) -> dict[str, int]:
        """Which methods asked for them."""
        return dict(Counter(fork.asked_by for fork in self.found).most_common())


@contextmanager
def recorded(spark: SparkSession) -> Iterator[Forks]:
    """Record every process that Spark's JVM starts meanwhile. It costs next to nothing."""
    jvm, forks = spark._jvm, Forks()
    assert jvm is not None
    recording = jvm.jdk.jfr.Recording()
    recording.enable(EVENT).withStackTrace()
    recording.start()
    try:
        yield forks
    finally:
        file = run_dir() / f"forks-{uuid4().hex[:8]}.jfr"
        place = jvm.java.nio.file.Path.of(str(file), spark.sparkContext._gateway.new_array(jvm.java.lang.String, 0))
        recording.stop()
        recording.dump(place)
        recording.close()
        forks.found = [_fork(event) for event in jvm.jdk.jfr.consumer.RecordingFile.readAllEvents(place)]
        file.unlink()


def _fork(event) -> Fork:
    command = event.getString("command") or ""
    stack = event.getStackTrace()
    methods = [frame.getMethod() for frame in stack.getFrames()] if stack is not None else []
    names = [f"{method.getType().getName()}.{method.getName()}" for method in methods]
    ours = [name for name in names if name.startswith(HADOOP) and ".util.Shell" not in name]
    return Fork(Path(command.split()[0]).name if command else "?", ours[0].removeprefix(HADOOP) if ours else "?")
