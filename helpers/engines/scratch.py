"""This process's scratch folder: nothing is written outside the checkout and the system's temporary folder."""

import shutil
import tempfile
import time
from functools import cache
from pathlib import Path

from helpers.engines import janitor

SETTLED = 0.1  # seconds without a folder: nobody makes it anew


@cache
def run_dir() -> Path:
    """Broker data, checkpoints, logs; gone when the process is."""
    folder = Path(tempfile.mkdtemp(prefix="lab-"))
    janitor.remove_at_exit(folder)
    return folder


def remove(folder: str | Path, within: float = 5) -> None:
    """Delete a folder in which a query that has just ended may still be writing: again, until it stays away."""
    deadline = time.monotonic() + within
    while time.monotonic() < deadline:
        shutil.rmtree(folder, ignore_errors=True)
        time.sleep(SETTLED)
        if not Path(folder).exists():
            return
