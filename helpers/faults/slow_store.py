"""A checkpoint store that answers late: the local disk behind a Hadoop FileSystem that waits before every request.

It stands for an object store, where a request costs from tens to hundreds of milliseconds. Nothing is
simulated in Spark: it writes, lists and renames through Hadoop's interface as it would on a cloud store.
"""

from pyspark.sql import SparkSession

from helpers.errors import LabError

SCHEME = "slow"  # slow://100/some/folder: every request takes 100 ms longer
LONGEST_MS = 5_000
CLASS = "lab.SlowFileSystem"
JAVA = """
package lab;

import java.io.IOException;
import java.net.URI;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.*;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.util.Progressable;

public class SlowFileSystem extends RawLocalFileSystem {
    private URI uri;
    private long delay;

    public void initialize(URI address, Configuration conf) throws IOException {
        this.uri = URI.create(address.getScheme() + "://" + address.getAuthority());
        this.delay = Long.parseLong(address.getAuthority());
        super.initialize(address, conf);
        this.setWorkingDirectory(this.getInitialWorkingDirectory());
    }

    public URI getUri() { return this.uri == null ? super.getUri() : this.uri; }

    public String getScheme() { return this.getUri().getScheme(); }

    private void hold() throws IOException {
        try {
            Thread.sleep(this.delay);
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt();
            throw new java.io.InterruptedIOException("the query was stopped");
        }
    }

    public FSDataInputStream open(Path file, int buffer) throws IOException {
        this.hold();
        return super.open(file, buffer);
    }

    public FSDataOutputStream create(Path file, FsPermission permission, boolean overwrite, int buffer,
            short replication, long block, Progressable progress) throws IOException {
        this.hold();
        return super.create(file, permission, overwrite, buffer, replication, block, progress);
    }

    public FSDataOutputStream create(Path file, boolean overwrite, int buffer, short replication, long block,
            Progressable progress) throws IOException {
        this.hold();
        return super.create(file, overwrite, buffer, replication, block, progress);
    }

    public boolean rename(Path from, Path to) throws IOException {
        this.hold();
        return super.rename(from, to);
    }

    public boolean delete(Path file, boolean recursive) throws IOException {
        this.hold();
        return super.delete(file, recursive);
    }

    public FileStatus[] listStatus(Path folder) throws IOException {
        this.hold();
        return super.listStatus(folder);
    }
}
"""


def slow_store(spark: SparkSession, folder: str, ms: int) -> str:
    """The address of a local folder in a store where each read, write, rename, delete or listing waits `ms` first."""
    if not isinstance(ms, int) or not 0 <= ms <= LONGEST_MS:
        raise LabError(f"ms={ms!r}: a request may wait a whole number of milliseconds from 0 to {LONGEST_MS:,}.")
    if not spark.sparkContext.master.startswith("local"):
        raise LabError("The slow store lives in one JVM: it needs Spark in local mode. Unset LAB_SPARK_MASTER.")
    address = f"{SCHEME}://{ms}{folder}"
    _mount(spark, address)
    return address


def _mount(spark: SparkSession, address: str) -> None:
    """Compile the class with Janino, which Spark brings along, and let Hadoop open the store once: it keeps it."""
    jvm, conf = spark._jvm, spark._jsc.hadoopConfiguration()
    if conf.get(f"fs.{SCHEME}.impl") is None:
        compiler = jvm.org.codehaus.janino.SimpleCompiler()
        compiler.setParentClassLoader(conf.getClassLoader())
        compiler.cook(JAVA)
        conf.setClassLoader(compiler.getClassLoader())
        conf.set(f"fs.{SCHEME}.impl", CLASS)
    jvm.org.apache.hadoop.fs.FileSystem.get(jvm.java.net.URI.create(address), conf)
