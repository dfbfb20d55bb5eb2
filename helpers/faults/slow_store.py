"""A checkpoint store that answers late: the local disk behind a Hadoop FileSystem that waits before every request.

It stands for an object store, where a request costs from tens to hundreds of milliseconds. Nothing is
simulated in Spark: it writes, lists and renames through Hadoop's interface as it would on a cloud store.
"""

from pathlib import Path

from pyspark.sql import SparkSession

from helpers.engines.file_systems import serve
from helpers.engines.spark import is_local
from helpers.errors import LabError

SCHEME = "slow"  # slow://100/some/folder: every request takes 100 ms longer
LONGEST_MS = 5_000
SOURCE = Path(__file__).with_name("SlowFileSystem.java")


def slow_store(spark: SparkSession, folder: str, ms: int) -> str:
    """The address of a local folder in a store where each read, write, rename, delete or listing waits `ms` first."""
    if not isinstance(ms, int) or not 0 <= ms <= LONGEST_MS:
        raise LabError(f"ms={ms!r}: a request may wait a whole number of milliseconds from 0 to {LONGEST_MS:,}.")
    if not is_local(spark):
        raise LabError("The slow store lives in one JVM: it needs Spark in local mode. Unset LAB_SPARK_MASTER.")
    address = f"{SCHEME}://{ms}{folder}"
    _mount(spark, address)
    return address


def _mount(spark: SparkSession, address: str) -> None:
    """Let Hadoop open the store once: it keeps it."""
    serve(spark, SCHEME, SOURCE)
    jvm = spark._jvm
    assert jvm is not None
    jvm.org.apache.hadoop.fs.FileSystem.get(jvm.java.net.URI.create(address), spark._jsc.hadoopConfiguration())
