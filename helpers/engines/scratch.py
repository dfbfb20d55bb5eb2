"""This process's scratch folder: nothing is written outside the checkout and the system's temporary folder."""

import tempfile
from functools import cache
from pathlib import Path

from helpers.engines import janitor


@cache
def run_dir() -> Path:
    """Broker data, checkpoints, logs; gone when the process is."""
    folder = Path(tempfile.mkdtemp(prefix="lab-"))
    janitor.remove_at_exit(folder)
    return folder
