"""`start_spark()`: a local Spark that keeps its log out of your notebook."""

import logging
import os
import re
import signal
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from subprocess import Popen
from uuid import uuid4

from pyspark import SparkConf, SparkContext, java_gateway
from pyspark.sql import SparkSession, SQLContext

from helpers.engines import janitor, jvm_log
from helpers.engines.file_systems import start_no_processes
from helpers.engines.jars import connector_jars
from helpers.engines.java import collector_option, find_java
from helpers.engines.scratch import run_dir
from helpers.errors import LabError, first_line
from helpers.settings import MANAGER, NO_FORKS, SLOTS, SPARK_HEAP, given

LOOPBACK = "127.0.0.1"
STOP_SECONDS = 15  # so long it may take to answer, and as long again to end
HANGING_SECONDS = 2  # for a JVM that did not answer
JAVA_OPTIONS = "spark.driver.extraJavaOptions"
JVM_LOG = "jvm.log"
GONE = (
    "Spark's process has ended (out of memory, or somebody killed it). Run the set-up cell again: it starts a new one."
)

LOG4J = """\
rootLogger.level = warn
rootLogger.appenderRef.file.ref = file
appender.file.type = File
appender.file.name = file
appender.file.fileName = {log}
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{HH:mm:ss.SSS}} %p %c{{1}}: %m%n%ex
"""


def start_spark(slots: int = SLOTS, attempts: int = 1, collector: str = "Parallel", **conf: object) -> SparkSession:
    """A Spark session with `slots` task slots; any Spark setting as `**{"spark.some.setting": value}`.

    A task may be tried `attempts` times: once is the default of local mode, a cluster tries four times. The garbage
    `collector` is Parallel, G1 or ZGC.

    A slot is a thread: more slots than cores is fine. LAB_SPARK_MASTER runs it on another master, with that
    master's slots: `spark.sparkContext.defaultParallelism` says how many there are.
    """
    if not isinstance(slots, int) or not 1 <= slots <= 512:
        raise LabError(f"slots={slots!r}: ask for a whole number of task slots from 1 to 512.")
    find_java()
    stop_spark()  # a second start in one kernel replaces the first, alive or dead
    folder = run_dir() / f"spark-{uuid4().hex[:8]}"
    folder.mkdir()
    settings = _settings(slots, attempts, collector_option(collector), folder)
    for key, value in conf.items():
        added = key == JAVA_OPTIONS  # ours carry the log file's place: yours join them
        settings[key] = f"{settings[key]} {value}" if added else str(value)
    spark = _launch(SparkConf(loadDefaults=False).setAll(list(settings.items())), folder)
    if is_local(spark):
        start_no_processes(spark)
    return spark


def is_local(spark: SparkSession) -> bool:
    """All of Spark is in one JVM."""
    return re.match(r"local(\[|$)", spark.sparkContext.master) is not None


def stop_spark() -> None:
    """Stop Spark and its JVM, whether that works, hangs or is dead. Safe to call when nothing runs."""
    gateway = SparkContext._gateway
    if gateway is None:
        return
    asking = threading.Thread(target=_ask_to_stop, daemon=True)
    try:
        if gateway.proc.poll() is None:
            with suppress(RuntimeError):  # a newer Python starts no thread while it exits: SIGTERM must do then
                asking.start()
                asking.join(STOP_SECONDS)
    finally:
        _end(gateway.proc, HANGING_SECONDS if asking.is_alive() else STOP_SECONDS)
        if asking.ident is not None:
            asking.join(STOP_SECONDS)  # with its JVM gone it gets an error; it must not stop what comes next
        _forget()
        gateway.shutdown()  # its Python side


def _ask_to_stop() -> None:
    session = SparkSession._instantiatedSession
    if session is not None:
        with suppress(Exception), warnings.catch_warnings(action="ignore"):
            for query in session.streams.active:
                query.stop()
            session.stop()


def _forget() -> None:
    """What pyspark keeps of a session for the next `SparkContext` in this process, of a dead one too."""
    context = SparkContext._active_spark_context
    if context is not None:
        context._jsc = None  # there is no JVM left to tell
        context.stop()
    SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = SparkSession._activeSession = None
    SQLContext._instantiatedContext = None


def log_file(spark: SparkSession) -> Path:
    """Where this session's log goes."""
    return Path(spark.conf.get("spark.lab.log"))


def stops(spark: SparkSession, since: float, until: float) -> list[jvm_log.Stop]:
    """When Spark's JVM stood still (the driver's: in local mode that is all of Spark)."""
    log = log_file(spark).with_name(JVM_LOG)
    return jvm_log.stops(log.read_text(errors="replace"), since, until) if log.exists() else []


def jvm_pid() -> int:
    """The process that Spark's driver runs in."""
    if SparkContext._gateway is None:
        raise LabError("Spark does not run: start it first.")
    if SparkContext._gateway.proc.poll() is not None:
        raise LabError(GONE)
    return SparkContext._gateway.proc.pid


def _settings(slots: int, attempts: int, collects: str, folder: Path) -> dict[str, str]:
    log = folder / "spark.log"
    log4j = folder / "log4j2.properties"
    log4j.write_text(LOG4J.format(log=log))
    noting = jvm_log.option(folder / JVM_LOG)
    return {
        "spark.app.name": "microbatch-to-milliseconds",
        "spark.master": given("LAB_SPARK_MASTER")
        or (f"local[{slots}]" if attempts == 1 else f"local[{slots},{attempts}]"),
        "spark.jars": ",".join(map(str, connector_jars())),
        "spark.driver.memory": SPARK_HEAP,
        JAVA_OPTIONS: f"-Dlog4j2.configurationFile=file:{log4j} -XX:-UsePerfData {collects} {noting}",
        "spark.driver.host": LOOPBACK,
        "spark.driver.bindAddress": LOOPBACK,
        "spark.local.dir": str(folder / "local"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        MANAGER: NO_FORKS,  # Spark's own choice starts readlink for every file of a local folder (lesson 01)
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.streaming.numRecentProgressUpdates": "1000",  # a lesson reads all batches of a run
        "spark.ui.showConsoleProgress": "false",
        "spark.lab.log": str(log),
    }


def _launch(conf: SparkConf, folder: Path) -> SparkSession:
    os.environ["SPARK_LOCAL_IP"] = LOOPBACK  # the UI binds to what this says
    output = folder / "jvm.out"
    jvm: list[Popen] = []

    def popen(*words, **options) -> Popen:
        """On the janitor's list from the first moment: interrupted later, pyspark would lose track of it."""
        jvm.append(Popen(*words, **options))
        janitor.kill_at_exit(jvm[0].pid)
        return jvm[0]

    with output.open("wb") as file:
        java_gateway.Popen = popen
        try:
            streams = {"stdout": file, "stderr": file, "start_new_session": True}
            gateway = java_gateway.launch_gateway(conf, streams)
            with _ctrl_c_unchanged():
                return SparkSession(SparkContext(conf=conf, gateway=gateway))
        except BaseException as problem:
            why = first_line(problem)  # the JVM is asked for it, so before it goes
            stop_spark()
            for process in jvm:
                _end(process, STOP_SECONDS)
            if not isinstance(problem, Exception):
                raise  # Ctrl-C
            tail = "\n".join(output.read_text(errors="replace").splitlines()[-12:])
            raise LabError(
                f"Spark {version('pyspark')} did not start on {conf.get('spark.master')}: "
                f"{why}. The end of what its JVM said:\n{tail}"
            ) from problem
        finally:
            java_gateway.Popen = Popen


@contextmanager
def _ctrl_c_unchanged() -> Iterator[None]:
    """pyspark's own Ctrl-C handler calls the JVM in the middle of another call to it, which breaks both."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)


def _worth_a_line(record: logging.LogRecord) -> bool:
    """Not the stack that py4j logs for every call cut short: whoever interrupted it knows."""
    return "while sending command" not in str(record.msg)


logging.getLogger().addFilter(_worth_a_line)
logging.getLogger("py4j").setLevel(logging.CRITICAL)  # what it logs below that, it also raises


def _end(process: Popen, grace: float) -> None:
    if process.stdin is not None:
        process.stdin.close()  # the JVM watches its stdin and leaves when it closes
    janitor.end_group(process.pid, grace)
    process.wait()
    janitor.forget(process.pid)
