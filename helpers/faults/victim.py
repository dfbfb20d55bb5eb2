"""A streaming query in a process of its own, with a Spark of its own: made to be killed.

`kill -9` on a notebook's own Spark would take the notebook's session with it, so the query that is to
crash runs elsewhere. Your function travels there by value; the checkpoint folder and the topics stay here.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict

import psutil
from pyspark import cloudpickle
from pyspark.sql import SparkSession
from pyspark.sql.streaming import DataStreamWriter

from helpers.engines import janitor
from helpers.engines.scratch import run_dir
from helpers.errors import LabError, first_line
from helpers.ruler.route import Route
from helpers.settings import ROOT, SLOTS

READY_SECONDS = 120
START_SECONDS = 60
STOP_SECONDS = 60

SparkQuery = Callable[[SparkSession, Route], DataStreamWriter]


class Victim:
    """The parent's side of one such process. It starts its Spark at once and then waits for a query."""

    def __init__(self, slots: int = SLOTS) -> None:
        self.jvm: int | None = None
        self._frames: dict[str, dict] = {}
        self._news = threading.Condition()
        self._ended = False
        self._log = run_dir() / f"victim-{os.urandom(4).hex()}.err"
        with self._log.open("wb") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "helpers.faults.victim_process", str(slots)],
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
            )
        janitor.kill_at_exit(self._process.pid)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def run(self, query: SparkQuery, route: Route, trigger: dict[str, str]) -> None:
        """Start your query there; returns once it runs. If it cannot, the process is ended and you get a sentence."""
        try:
            parcel = pack(query)
            self._wait_for("ready", READY_SECONDS)
            order = json.dumps({"route": asdict(route), "trigger": trigger, "bytes": len(parcel)})
            self._process.stdin.write(order.encode() + b"\n" + parcel)
            self._process.stdin.flush()
            self._wait_for("started", START_SECONDS)
        except BaseException:
            self.kill()
            raise

    def check(self) -> None:
        """Raise if the query ended although nobody killed it."""
        with self._news:
            if "error" in self._frames:
                raise LabError(self._frames["error"]["text"])
            if self._ended:
                raise LabError(f"The query's process ended by itself. It said:\n{self._last_words()}")

    def stop(self) -> None:
        """query.stop(), as a deploy does, and wait for it; then the process is ended."""
        try:
            self._process.stdin.write(b"stop\n")
            self._process.stdin.flush()
            self._wait_for("stopped", STOP_SECONDS)
        finally:
            self.kill()

    def kill(self) -> None:
        """SIGKILL, to the Python process and to its JVM, at once: no clean-up, no last commit. Safe to call twice."""
        groups = [pid for pid in (self.jvm, self._process.pid) if pid is not None]
        if self._process.returncode is None:
            for group in groups:
                _kill_group(group)
        self._process.wait()
        if self.jvm is not None:
            _wait_until_dead(self.jvm)
        self._reader.join(5)
        for stream in (self._process.stdin, self._process.stdout):
            stream.close()
        janitor.forget(self._process.pid)
        self._log.unlink(missing_ok=True)

    def _wait_for(self, kind: str, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while True:
            self.check()
            with self._news:
                if kind in self._frames:
                    return
                self._news.wait(0.2)
            if time.monotonic() > deadline:
                raise LabError(
                    f"The query's process was not {kind} within {seconds:.0f} s. Is the machine very busy? "
                    f"Try again. It said:\n{self._last_words()}"
                )

    def _read(self) -> None:
        for line in self._process.stdout:
            frame = json.loads(line)
            with self._news:
                self._frames[frame["kind"]] = frame
                self.jvm = frame.get("jvm", self.jvm)
                self._news.notify_all()
        with self._news:
            self._ended = True
            self._news.notify_all()

    def _last_words(self, lines: int = 8) -> str:
        return "\n".join(self._log.read_text(errors="replace").splitlines()[-lines:])


class Understudy:
    """Keeps one Victim with a started Spark in reserve: a restart then takes as long as the query, not as a JVM."""

    def __init__(self, slots: int = SLOTS) -> None:
        self._slots = slots
        self._spare: Victim | None = None

    def prepare(self) -> None:
        """Begin to start the next one, in the background."""
        if self._spare is None:
            self._spare = Victim(self._slots)

    def take(self) -> Victim:
        victim, self._spare = self._spare or Victim(self._slots), None
        return victim

    def close(self) -> None:
        if self._spare is not None:
            self._spare.kill()
            self._spare = None


def pack(query: SparkQuery) -> bytes:
    """Your function as bytes, with everything it mentions."""
    if not callable(query):
        raise LabError(
            f"{query!r} is no query: give a function that takes (spark, route) and returns the stream writer."
        )
    try:
        return cloudpickle.dumps(query)
    except Exception as problem:
        raise LabError(
            f"The query cannot travel to another process: {first_line(problem)}. It may use only what can be copied. "
            "Use the `spark` that it is given, not the notebook's own."
        ) from problem


def _wait_until_dead(pid: int, within: float = 10) -> None:
    """A killed JVM needs a moment to give its memory back, and it is not our child: until then it may still write."""
    deadline = time.monotonic() + within
    with contextlib.suppress(psutil.NoSuchProcess):
        while psutil.Process(pid).status() != psutil.STATUS_ZOMBIE and time.monotonic() < deadline:
            time.sleep(0.005)


def _kill_group(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):  # it is gone already
        os.killpg(pid, signal.SIGKILL)
