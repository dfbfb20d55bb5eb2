"""What this machine has and lacks: a line per need, with the fix for each."""

import os
import re
import shutil
import socket
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from helpers.engines import jars, java
from helpers.engines.machine import core_count, memory_bytes
from helpers.errors import LabError
from helpers.paths import ROOT, cache_dir, shown

OK, WARNING, FAIL = "OK", "warning", "FAIL"
COLOURS = {OK: "\033[32m", WARNING: "\033[33m", FAIL: "\033[31m"}

OLDEST_PYTHON = (3, 11)
MEMORY_GIB = (4, 8)  # needed, comfortable
CORES = 2
SLOTS = 4  # what start_spark() asks for
DISK_GIB = 2
GIB = 2**30

SERVER = r"(\[[\da-fA-F:]+\]|[^\s:,]+):\d+"  # host:port
# Every variable that the lab reads, and what it may say.
VARIABLES = {
    "LAB_CACHE": (r".+", "a folder"),
    "LAB_KAFKA": (r"(?i)\s*(auto|testcontainers|embedded|external)\s*", "auto, testcontainers, embedded or external"),
    "LAB_KAFKA_BOOTSTRAP": (rf"\s*{SERVER}(\s*,\s*{SERVER})*\s*", "host:port, for example localhost:9092"),
    "LAB_KAFKA_IMAGE": (r"[a-z0-9][\w.:/@-]*", "an image name, for example apache/kafka:4.3.1"),
    "LAB_KAFKA_PORT": (r"\d+", "a port from 1024 to 65535, or unset it to get a free one"),
    "LAB_PACE": (r"(?i)\s*(quick|full)\s*", "quick or full"),
    "LAB_SPARK_MASTER": (
        r"local(\[(\*|[1-9]\d*)(,\s*\d+)?\])?|local-cluster\[.+\]|(spark|k8s)://.+|yarn",
        f"a Spark master, for example local[{SLOTS}] or spark://host:7077",
    ),
}


@dataclass(frozen=True)
class Check:
    """One need: how it stands, what was found, and what to do if that is not enough."""

    what: str
    status: str  # OK, warning or FAIL
    found: str
    fix: str = ""


def doctor(say: Callable[[str], None] = print) -> bool:
    """Print a line per need and the fix below those that have one. True if nothing FAILed."""
    every = checks()
    wide = max(len(check.what) for check in every)
    for check in every:
        say(f"{_badge(check.status)}  {check.what:<{wide}}  {check.found}")
        if check.fix:
            say(f"{'':<{wide + 15}}→ {check.fix}")
    failed = [check.what for check in every if check.status == FAIL]
    say(f"Not ready yet: {', '.join(failed)}. Fix this first." if failed else "Ready: `make race` will run here.")
    return not failed


def checks() -> list[Check]:
    """All of them, in the order in which a newcomer would meet them."""
    if python().status == FAIL:
        return [python()]  # the others may not even run
    return [python(), packages(), java_(), memory(), cores(), slots(), docker(), jars_(), disk(), *settings()]


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
    fix = f"{sys.executable} -m pip install -r requirements.txt"
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
    found, tolerance = f"{size:.1f} GiB", 0.9  # a machine sold with 4 GiB reports a little less
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


def slots() -> Check:
    """A slot is a thread, so cores do not limit them: only a master of the user's own does."""
    master = os.environ.get("LAB_SPARK_MASTER", "")
    local = re.fullmatch(r"local(?:\[(\*|\d+).*\])?", master)
    if master and not local:
        return Check("Slots", OK, f"those of {master} (LAB_SPARK_MASTER)")
    count = SLOTS if not local else core_count() if local[1] == "*" else int(local[1] or 1)
    found = f"{count} (slots are threads: more than cores is fine)"
    if count < SLOTS:
        fix = f"The lessons expect {SLOTS}: set LAB_SPARK_MASTER=local[{SLOTS}], or unset it."
        return Check("Slots", WARNING, f"{found}, from LAB_SPARK_MASTER={master}", fix)
    return Check("Slots", OK, found)


def docker() -> Check:
    """Never a must, unless LAB_KAFKA says so: the embedded broker is as real."""
    if _backend() == "embedded":
        return Check("Docker", OK, "not needed: LAB_KAFKA=embedded")
    if _backend() == "external":
        return Check("Docker", OK, "not needed: a broker of your own is used")
    fault = _engine_fault()
    if not fault:
        return Check("Docker", OK, "an engine answers: Kafka will run in a container")
    if _backend() == "testcontainers":
        fix = "Start Docker, or set LAB_KAFKA=embedded to run a real broker without it."
        return Check("Docker", FAIL, f"LAB_KAFKA=testcontainers, but no engine answers ({fault})", fix)
    return Check("Docker", OK, "no engine answers: the embedded broker will be used")


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
    if os.environ.get("LAB_CACHE"):
        places["LAB_CACHE"] = _existing(cache_dir())
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
    return Check("Free disk", OK, found)


def settings() -> list[Check]:
    """The LAB_* variables: a line for each that makes no sense, or one line if all do."""
    given = {name: value for name, value in sorted(os.environ.items()) if name.startswith("LAB_") and value}
    found = [check for name, value in given.items() if (check := _setting(name, value))]
    if _backend() == "external" and "LAB_KAFKA_BOOTSTRAP" not in given:
        fix = "Set it to your broker, for example LAB_KAFKA_BOOTSTRAP=localhost:9092."
        found.append(Check("LAB_KAFKA", FAIL, "external, but LAB_KAFKA_BOOTSTRAP is not set", fix))
    return found or [Check("Settings", OK, ", ".join(given) or "no LAB_* variable is set, and none is needed")]


def _setting(name: str, value: str) -> Check | None:
    """What is wrong with this variable; None if nothing is."""
    if name not in VARIABLES:
        return Check(name, WARNING, f"{value!r}, but nothing reads it", f"There are {', '.join(VARIABLES)}.")
    form, use = VARIABLES[name]
    if not re.fullmatch(form, value) or (name == "LAB_KAFKA_PORT" and not 1024 <= int(value) <= 65535):
        return Check(name, FAIL, f"{value!r} makes no sense", f"Use {use}.")
    if name == "LAB_CACHE" and not _existing(Path(value).resolve()).is_dir():
        return Check(name, FAIL, f"{value!r} is not a folder", "Name a folder, or unset it.")
    if name == "LAB_CACHE" and not Path(value).is_absolute():
        fix = "Give the full path: notebooks run in another folder and would not find this one."
        return Check(name, WARNING, f"{value!r} is not an absolute path", fix)
    used = name == "LAB_KAFKA_BOOTSTRAP" and _backend() == "external"
    if used and not any(_answers(server.strip()) for server in value.split(",")):
        fix = "Start that broker or correct the address; unset it to let the lab start one."
        return Check(name, FAIL, f"nothing answers at {value}", fix)
    return None


def _backend() -> str:
    """The kind of broker that start_kafka() would go for."""
    wanted = os.environ.get("LAB_KAFKA", "").strip().lower() or "auto"
    named = os.environ.get("LAB_KAFKA_BOOTSTRAP", "").strip()
    return "external" if wanted == "auto" and named else wanted


def _answers(server: str) -> bool:
    host, _, port = server.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=3).close()
    except (OSError, OverflowError):
        return False
    return True


def _engine_fault() -> str:
    try:
        from helpers.engines.container import engine_fault
    except ImportError as problem:  # said by packages() as well
        return str(problem)
    return engine_fault()


def _installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _existing(path: Path) -> Path:
    """The folder itself, or the nearest one above it that exists."""
    return next(one for one in (path, *path.parents) if one.exists())


def _badge(status: str) -> str:
    badge = f"[{status:^9}]"
    return f"{COLOURS[status]}{badge}\033[0m" if sys.stdout.isatty() and "NO_COLOR" not in os.environ else badge
