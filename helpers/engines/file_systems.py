"""Hadoop file systems of our own, compiled in Spark's JVM as it runs, and a local one that starts no processes.

Where Hadoop's native library is missing (pip's pyspark has none), its local file system runs `chmod` as a process for
every file that it creates. A laptop's checkpoints would pay for that, a cluster's on HDFS or an object store would not.
"""

from pathlib import Path

from pyspark.sql import SparkSession

FORK_FREE = Path(__file__).with_name("ForkFreeFileSystem.java")


def serve(spark: SparkSession, scheme: str, source: Path) -> None:
    """Let Hadoop use the class in this Java file for addresses of this scheme. Janino, which Spark has, compiles it."""
    jvm, conf = spark._jvm, spark._jsc.hadoopConfiguration()
    assert jvm is not None
    name = f"lab.{source.stem}"
    if conf.get(f"fs.{scheme}.impl") == name:
        return
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(conf.getClassLoader())
    compiler.cook(source.read_text())
    conf.setClassLoader(compiler.getClassLoader())
    conf.set(f"fs.{scheme}.impl", name)


def start_no_processes(spark: SparkSession) -> None:
    """From now on local files get their permissions without a process."""
    serve(spark, "file", FORK_FREE)
    assert spark._jvm is not None
    spark._jvm.org.apache.hadoop.fs.FileSystem.closeAll()  # Hadoop keeps the one that it has opened before
    files = spark._jvm.java.net.URI.create("file:///")
    spark._jvm.org.apache.hadoop.fs.FileSystem.get(files, spark._jsc.hadoopConfiguration())
