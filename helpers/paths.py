"""Where things live: nothing is written outside the checkout and the system's temporary folder."""

import os
import tempfile
from functools import cache
from pathlib import Path

from helpers.engines import janitor

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"


def cache_dir() -> Path:
    """Downloads that survive between runs; `LAB_CACHE` moves them (relative: to the checkout)."""
    return (ROOT / Path(os.environ.get("LAB_CACHE") or ".cache").expanduser()).resolve()


def shown(path: str | Path) -> str:
    """A path as a reader of the checkout knows it: relative to the checkout or the home folder if it is inside."""
    path = Path(path)
    for base, name in ((ROOT, ""), (Path.home(), "~/")):
        if path.is_relative_to(base):
            return f"{name}{path.relative_to(base)}"
    return str(path)


@cache
def run_dir() -> Path:
    """This process's scratch folder (broker data, checkpoints, logs); gone when the process is."""
    folder = Path(tempfile.mkdtemp(prefix="lab-"))
    janitor.remove_at_exit(folder)
    return folder
