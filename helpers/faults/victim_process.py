"""The victim's own process: `python -m helpers.faults.victim_process SLOTS`, started by `helpers.faults.victim.Victim`.

It starts a Spark, waits on stdin for a query, runs it, and ends when its parent does. It answers on
stdout with JSON lines: "ready" (with its JVM's process id), "started", "stopped" after it was asked to stop the
query, or "error" with a sentence.
"""

import json
import os
import sys
import threading
from typing import Any

from pyspark import cloudpickle
from pyspark.errors import PySparkException
from pyspark.sql.streaming import DataStreamWriter, StreamingQuery

from helpers.engines.spark import JAVA_OPTIONS, jvm_pid, start_spark
from helpers.errors import LabError, explain, first_line
from helpers.ruler.route import Route

SMALL: dict[str, Any] = {  # it lives for seconds: a quick start matters more than the last optimisation
    "spark.driver.memory": "1g",
    "spark.ui.enabled": "false",
    JAVA_OPTIONS: "-XX:TieredStopAtLevel=1",
}


def start_query(spark, order: dict, parcel: bytes) -> StreamingQuery:
    try:
        writer = cloudpickle.loads(parcel)(spark, Route(**order["route"]))
        if not isinstance(writer, DataStreamWriter):
            raise LabError(
                f"The query returned {writer!r}, not a stream writer: end it before .trigger() and .start()."
            )
        return writer.trigger(**order["trigger"]).start()
    except LabError:
        raise
    except PySparkException as problem:
        raise LabError(explain(problem)) from problem
    except Exception as problem:
        raise LabError(
            f"The query did not start under the trigger {order['trigger']}: {type(problem).__name__}: "
            f"{first_line(problem)}."
        ) from problem


def obey(query: StreamingQuery, stopped: threading.Event) -> None:
    """Stop the query in good order when the parent says so; end when the parent does."""
    for _ in sys.stdin.buffer:  # the only word there is
        stopped.set()
        query.stop()
    os._exit(1)


def main() -> None:
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # whatever else is printed must not mix with the answers

    def say(kind: str, **more: object) -> None:
        answers.write(json.dumps({"kind": kind, **more}) + "\n")

    try:
        spark = start_spark(int(sys.argv[1]), **SMALL)
        spark.range(1).count()  # the first job loads half of Spark's classes: do it while nobody waits
        say("ready", jvm=jvm_pid())
        order = json.loads(sys.stdin.buffer.readline() or "null")
        if order is None:
            return
        query = start_query(spark, order, sys.stdin.buffer.read(order["bytes"]))
        stopped = threading.Event()
        obeying = threading.Thread(target=obey, args=(query, stopped), daemon=True)
        obeying.start()
        say("started")
        query.awaitTermination()
        if stopped.is_set():
            say("stopped")
            obeying.join()  # whoever asked for it ends this process, too
        say("error", text=explain(None))
    except PySparkException as problem:
        say("error", text=explain(problem))
    except LabError as problem:
        say("error", text=str(problem))


if __name__ == "__main__":
    main()
