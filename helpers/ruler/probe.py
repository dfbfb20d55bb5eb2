"""The ruler: sends events on a fixed schedule from a process of its own, and times the results.

How it measures:
* Every event has its place in a fixed schedule. It is sent as soon as it is due, never skipped, and
  its latency counts from when it was *due*: a stall cannot hide the events that waited in it.
* The result's time is the broker's append time of the result record. The broker counts whole
  milliseconds, so half a millisecond is added, and due times are spread over the millisecond
  (`Load.due`): right on average. (With an external broker, which has a clock of its own, it is the
  time at which the result was read.)
* Which result accounts for which event is the ledger's rule: `helpers.ruler.ledger`.
"""

import json
import subprocess
import sys
import threading
from collections import deque
from contextlib import suppress
from dataclasses import asdict

import numpy as np

from helpers.engines import janitor
from helpers.errors import LabError
from helpers.ruler.load import SAMPLE, Load
from helpers.settings import ROOT


class Probe:
    """The parent's side: start it, poll it for samples, read its summary. As a context it is stopped at the end."""

    def __init__(
        self, bootstrap: str, events: str, results: str, load: Load, clock: str = "appended", skip: int = 0
    ) -> None:
        self.load, self.clock = load, clock
        self.samples: list[np.ndarray] = []
        self.status: dict = {"phase": "starting", "sent": 0, "out": 0, "measure_from": None}
        self.summary: dict | None = None
        self._lines: deque[str] = deque(maxlen=20)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "helpers.ruler.probe_process"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        janitor.kill_at_exit(self._process.pid)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        threading.Thread(target=self._read_stderr, daemon=True).start()
        settings = {
            "bootstrap": bootstrap,
            "events": events,
            "results": results,
            "load": asdict(load),
            "clock": clock,
            "skip": skip,
        }
        with suppress(OSError):  # it died at once: `result` says so
            self._process.stdin.write(json.dumps(settings).encode() + b"\n")
            self._process.stdin.flush()

    @property
    def pid(self) -> int:
        return self._process.pid

    def __enter__(self) -> "Probe":
        return self

    def __exit__(self, *_) -> None:
        self.stop()

    def wait(self, seconds: float) -> bool:
        """True once it has finished (or died)."""
        self._reader.join(seconds)
        return not self._reader.is_alive()

    def result(self) -> dict:
        """The summary, or a sentence about why there is none."""
        if self.summary is None:
            tail = "\n".join(self._lines)
            raise LabError(
                f"The probe ended without a result (exit code {self._process.wait(5)}): measure again. "
                + (f"It said:\n{tail}" if tail else "It said nothing: somebody killed it.")
            )
        if "error" in self.summary:
            raise LabError(self.summary["error"])
        return self.summary

    def stop(self) -> None:
        """End it. Safe to call twice."""
        if self._process.poll() is None:
            janitor.end_group(self._process.pid, grace=1)
        self._process.wait()
        with suppress(OSError):  # what it never read is of no use any more
            self._process.stdin.close()
        self._reader.join(5)
        janitor.forget(self._process.pid)

    def _read(self) -> None:
        """Frame after frame, until it ends; one that is cut off (it was killed) is not a frame."""
        out = self._process.stdout
        while (line := out.readline()).endswith(b"\n"):
            frame = json.loads(line)
            if frame["kind"] == "samples":
                data = out.read(frame["bytes"])
                if len(data) < frame["bytes"]:
                    return
                self.samples.append(np.frombuffer(data, SAMPLE))
                self.status = frame
            else:
                self.summary = frame

    def _read_stderr(self) -> None:
        for line in self._process.stderr:
            self._lines.append(line.decode(errors="replace").rstrip())
