"""What the doctor looks at on this machine: Python, packages, Java, memory, cores, jars, disk."""

import os
import platform
import re
import shutil
import sys
import tempfile
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from helpers.engines import jars, java
from helpers.engines.machine import core_count, memory_bytes
from helpers.errors import LabError
from helpers.settings import ROOT, cache_dir, shown

OK, WARNING, FAIL = "OK", "warning", "FAIL"

OLDEST_PYTHON = (3, 11)
MEMORY_GIB = (5, 8)  # needed (two Sparks and a broker, as in lesson 05), comfortable
CORES = 2
DISK_GIB = 2
GIB = 2**30


@dataclass(frozen=True)
class Check:
    """One need: how it stands, what was found, and what to do if that is not enough."""

    what: str
    status: str  # OK, warning or FAIL
    found: str
    fix: str = ""


def python() -> Check:
    found, oldest = sys.version.split()[0], ".".join(map(str, OLDEST_PYTHON))
    if sys.version_info[:2] >= OLDEST_PYTHON:
        return Check("Python", OK, f"{found} at {shown(sys.executable)}")
    fix = f"pyspark 4.3 needs Python {oldest} or newer: install one, delete .venv and run the same command again."
    return Check("Python", FAIL, found, fix)


def packages() -> Check:
    """Are the pinned versions the ones that are installed, and would pyspark start its own Spark?"""
    pins = re.findall(r"^([\w-]+)==(\S+)", (ROOT / "requirements.txt").read_text(), re.MULTILINE)
    have = {name: _installed(name) for name, _ in pins}
    absent = [name for name, _ in pins if have[name] is None]
    other = [f"{name} {have[name]} (pinned: {pin})" for name, pin in pins if have[name] not in (pin, None)]
    fix = f"{sys.executable} -m pip install --require-hashes -r requirements.lock"
    if absent:
        return Check("Packages", FAIL, f"missing: {', '.join(absent)}", fix)
    if other:
        return Check("Packages", WARNING, ", ".join(other), fix)
    if os.environ.get("SPARK_HOME"):
        found = f"SPARK_HOME is {os.environ['SPARK_HOME']}: pyspark would start that Spark instead of its own"
        return Check("Packages", WARNING, found, "unset SPARK_HOME")
    return Check("Packages", OK, f"{len(pins)} as pinned, with Spark {have['pyspark']}")


def java_() -> Check:
    try:
        found = java.find_java()
    except LabError as problem:
        return Check("Java", FAIL, str(problem).removesuffix(java.FIX).strip(), java.FIX)
    return Check("Java", OK, f"{found.version} from {found.vendor or 'an unnamed vendor'} at {shown(found.path)}")


def memory() -> Check:
    """What this machine, or the container that we are in, may use."""
    needed, comfortable = MEMORY_GIB
    try:
        size = memory_bytes() / GIB
    except (OSError, ValueError):
        return Check("Memory", WARNING, "unknown: this system does not say", f"Make sure it is {needed} GiB or more.")
    found, tolerance = f"{size:.1f} GiB", 0.9  # a machine sold with 8 GiB reports a little less
    if size < needed * tolerance:
        return Check("Memory", FAIL, found, f"Spark and Kafka need {needed} GiB together: give this machine more.")
    if size < comfortable * tolerance:
        fix = f"Enough, but {comfortable} GiB is comfortable: close other programs before you measure."
        return Check("Memory", WARNING, found, fix)
    return Check("Memory", OK, found)


def cores() -> Check:
    count = core_count()
    if count < CORES:
        fix = f"It will run, but slowly: with fewer than {CORES} cores load, Kafka and Spark wait for each other."
        return Check("Cores", WARNING, f"{count}", fix)
    return Check("Cores", OK, f"{count}")


def jars_() -> Check:
    bad, every = jars.faults(), len(jars.locked())
    if not bad:
        return Check("Jars", OK, f"{every} in {shown(jars.jars_dir())}, as in jars.lock")
    damaged = [name for name, what in bad.items() if what == "damaged"]
    if damaged:
        found = f"damaged: {', '.join(damaged[:3])}{' and others' if len(damaged) > 3 else ''}"
        return Check("Jars", WARNING, found, "They will be fetched again on first use, which needs a network once.")
    fix = "They will be fetched on first use (about 55 MB), which needs a network once."
    return Check("Jars", WARNING, f"{len(bad)} of {every} are not here yet", fix)


def disk() -> Check:
    """Room where downloads and results go, and where Kafka and Spark keep their data while they run."""
    places = {"checkout": ROOT, "temporary folder": Path(tempfile.gettempdir())}
    if not cache_dir().is_relative_to(ROOT):
        places["LAB_CACHE"] = existing(cache_dir())
    closed = [f"{path} ({name})" for name, path in places.items() if not os.access(path, os.W_OK)]
    if closed:
        fix = "Make it writable, or work in a folder of your own."
        return Check("Free disk", FAIL, f"cannot write to {' and '.join(closed)}", fix)
    free = {name: shutil.disk_usage(path).free / GIB for name, path in places.items()}
    tight = [f"{places[name]} ({name})" for name, size in free.items() if size < DISK_GIB]
    found = ", ".join(f"{size:.1f} GiB ({name})" for name, size in free.items())
    if tight:
        fix = f"Free {DISK_GIB} GiB at {' and '.join(tight)}; TMPDIR moves the temporary folder."
        return Check("Free disk", FAIL, found, fix)
    if on_a_windows_drive(ROOT):
        fix = "Clone it into your Linux home folder instead: from WSL every file on a Windows drive is slow."
        return Check("Free disk", WARNING, f"{found}; the checkout is on a Windows drive", fix)
    return Check("Free disk", OK, found)


def on_a_windows_drive(path: Path) -> bool:
    """WSL mounts drive C: at /mnt/c."""
    return "microsoft" in platform.release().lower() and re.match(r"/mnt/[a-z](/|$)", str(path)) is not None


def existing(path: Path) -> Path:
    """The folder itself, or the nearest one above it that exists."""
    return next(one for one in (path, *path.parents) if one.exists())


def _installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
