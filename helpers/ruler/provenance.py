"""Where a run's figures come from: machine, versions, the project's commit, and how Spark's JVM was set up."""

import platform
import subprocess
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version

from pyspark.sql import SparkSession

from helpers.engines.java import find_java
from helpers.engines.machine import core_count, memory_bytes
from helpers.engines.scratch import run_dir
from helpers.settings import ROOT

FORMAT = 3  # of a saved run; a reader that meets a larger number should say so
PACKAGES = ("pyspark", "confluent-kafka", "kafka-python")


def provenance() -> dict:
    """What this run ran on; the backend and the settings are added by the experiment."""
    return {
        "format": FORMAT,
        "commit": commit(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": f"{core_count()} cores, {memory_bytes() / 2**30:.0f} GiB, {platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "java": f"{find_java().version} ({find_java().vendor})",
        "versions": {name: version(name) for name in PACKAGES},
    }


@cache
def commit() -> str:
    """The project's commit, with a + if something is changed; "unknown" outside a git checkout."""
    if not (ROOT / ".git").exists():
        return "unknown"
    words = ["git", "-C", str(ROOT), "describe", "--always", "--abbrev=12", "--exclude=*", "--dirty=+"]
    try:
        said = subprocess.run(words, capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"
    return said.stdout.strip() or "unknown"


def of_spark(spark: SparkSession) -> dict:
    """How this Spark runs, from the JVM itself: its collector, its heap, and who writes its checkpoints."""
    jvm, sc = spark._jvm, spark.sparkContext
    assert jvm is not None
    beans = jvm.java.lang.management.ManagementFactory.getGarbageCollectorMXBeans()
    managers = jvm.org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager
    folder = jvm.org.apache.hadoop.fs.Path(str(run_dir()))
    manager = managers.create(folder, spark._jsparkSession.sessionState().newHadoopConf())
    return {
        "slots": sc.defaultParallelism,
        "collector": ", ".join(sorted(bean.getName() for bean in beans)),
        "heap_mib": round(jvm.java.lang.Runtime.getRuntime().maxMemory() / 2**20),
        "checkpoint_manager": manager.getClass().getSimpleName(),
    }
