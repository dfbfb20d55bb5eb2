"""One place for every setting: where things live, each LAB_* variable with its default and its sentence, the paces."""

import os
import re
from dataclasses import dataclass
from pathlib import Path

from helpers.errors import LabError

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
NOTEBOOKS = ROOT / "notebooks"

# -- the numbers that several places share

SLOTS = 4  # task slots of a lesson, the race and the bench, unless they ask for others
FETCH_WAIT_MS = 10  # how long a fetch of the tuned queries may wait; Kafka's own default is 500
LINGER_MS = 1  # of producer and sink, where a run is tuned for its tail
MANAGER = "spark.sql.streaming.checkpointFileManagerClass"  # who writes checkpoint files
NO_FORKS = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
INTERVAL = "5 minutes"  # of Real-Time Mode, where the interval is not what is studied
SPARK_HEAP = "2g"  # of the driver, which in local mode is all of Spark
LOOK_SECONDS = 0.5  # how often a run is looked at, and the live view drawn: the observer must not disturb
PATIENCE_SECONDS = 60  # how long the first result may take, and how far the sender may fall behind


@dataclass(frozen=True)
class Pace:
    """How long is measured, in seconds: each run of a lesson, and each trigger of the race."""

    seconds: float
    warmup: float
    race_seconds: float
    race_warmup: float


PACES = {
    "quick": Pace(seconds=6, warmup=4, race_seconds=20, race_warmup=8),
    "full": Pace(seconds=20, warmup=10, race_seconds=60, race_warmup=15),
}


# -- the variables


@dataclass(frozen=True)
class Variable:
    """A LAB_* variable: what it may say (`form`, and the same in words), and what holds without it."""

    form: str
    words: str
    default: str = ""


SERVER = r"(\[[\da-fA-F:]+\]|[^\s:,]+):\d+"
VARIABLES = {
    "LAB_CACHE": Variable(r".+", "a folder", ".cache"),
    "LAB_KAFKA": Variable(
        r"(?i)auto|testcontainers|embedded|external", "auto, testcontainers, embedded or external", "auto"
    ),
    "LAB_KAFKA_BOOTSTRAP": Variable(rf"{SERVER}(\s*,\s*{SERVER})*", "host:port, for example localhost:9092"),
    "LAB_KAFKA_IMAGE": Variable(r"[a-z0-9][\w.:/@-]*", "an image name, for example apache/kafka:latest"),
    "LAB_KAFKA_PORT": Variable(r"\d+", "a port from 1024 to 65535, or unset it to get a free one"),
    "LAB_PACE": Variable(r"(?i)quick|full", "quick or full", "quick"),
    "LAB_SPARK_MASTER": Variable(
        r"local(\[(\*|[1-9]\d*)(,\s*\d+)?\])?|local-cluster\[.+\]|(spark|k8s)://.+|yarn",
        f"a Spark master, for example local[{SLOTS}] or spark://host:7077",
    ),
}


def given(name: str) -> str:
    """What a variable says, or its default; a sentence if that makes no sense."""
    value = said().get(name)
    if value is None:
        return VARIABLES[name].default
    if instead := fault(name, value):
        raise LabError(f"{name} is {value!r}: {instead}.")
    return value


def said() -> dict[str, str]:
    """Every LAB_* variable that says something, known or misspelt."""
    ours = {name: value.strip() for name, value in sorted(os.environ.items()) if name.startswith("LAB_")}
    return {name: value for name, value in ours.items() if value}


def fault(name: str, value: str) -> str:
    """What to use instead of this value; empty if it makes sense."""
    fits = re.fullmatch(VARIABLES[name].form, value)
    if fits and name == "LAB_KAFKA_PORT":
        fits = 1024 <= int(value) <= 65535
    return "" if fits else f"use {VARIABLES[name].words}"


def pace() -> str:
    """The name of the pace: quick or full."""
    return given("LAB_PACE").lower()


def kafka_backend() -> str:
    """The kind of broker to go for: an address of one's own makes `auto` mean `external`."""
    wanted = given("LAB_KAFKA").lower()
    return "external" if wanted == "auto" and "LAB_KAFKA_BOOTSTRAP" in said() else wanted


def cache_dir() -> Path:
    """Downloads that survive between runs; a relative LAB_CACHE counts from the checkout."""
    return (ROOT / Path(given("LAB_CACHE")).expanduser()).resolve()


def shown(path: str | Path) -> str:
    """A path as a reader of the checkout knows it: relative to the checkout or the home folder if it is inside."""
    path = Path(path)
    for base, name in ((ROOT, ""), (Path.home(), "~/")):
        if path.is_relative_to(base):
            return f"{name}{path.relative_to(base)}"
    return str(path)
