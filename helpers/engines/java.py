"""Which Java runs Spark and the broker."""

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from helpers.errors import LabError

OLDEST = 17
FIX = (
    f"Install a Java {OLDEST} or newer (Debian/Ubuntu: apt install openjdk-17-jre-headless; "
    "macOS: brew install openjdk@17; conda: environment.yml brings it) and set JAVA_HOME to it "
    "if `java` on your PATH is an older one."
)


@dataclass(frozen=True)
class Java:
    path: str
    major: int
    version: str
    vendor: str


def find_java() -> Java:
    """The Java that Spark would start: JAVA_HOME first, then the PATH. A sentence if it will not do."""
    home = os.environ.get("JAVA_HOME")
    path = str(Path(home, "bin", "java")) if home else shutil.which("java")
    if path is None:
        raise LabError(f"There is no Java on this machine. {FIX}")
    if not os.access(path, os.X_OK):
        raise LabError(f"JAVA_HOME is {home}, but there is no bin/java in it. {FIX}")
    java = _ask(path)
    if java.major < OLDEST:
        raise LabError(f"{path} is Java {java.version}, but Spark 4 needs Java {OLDEST} or newer. {FIX}")
    return java


COLLECTORS = {"Parallel": "-XX:+UseParallelGC", "G1": "-XX:+UseG1GC", "ZGC": "-XX:+UseZGC"}
ASKED_FOR_GENERATIONS = range(21, 23)  # ZGC has them from Java 21 on, and by default from 23 on


def collector_option(name: str) -> str:
    """The JVM's option for a garbage collector."""
    if name not in COLLECTORS:
        raise LabError(f"collector={name!r}: it can be {', '.join(COLLECTORS)}.")
    generations = name == "ZGC" and find_java().major in ASKED_FOR_GENERATIONS
    return COLLECTORS[name] + (" -XX:+ZGenerational" if generations else "")


@cache
def _ask(path: str) -> Java:
    try:
        said = subprocess.run(
            [path, "-XshowSettings:properties", "-version"],
            capture_output=True,
            text=True,
            timeout=30,
        ).stderr
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise LabError(f"{path} does not run: {problem}. {FIX}") from problem
    version, vendor = _property(said, "java.version"), _property(said, "java.vendor")
    number = re.match(r"(?:1\.)?(\d+)", version)
    if not number:
        raise LabError(f"{path} did not say which version it is. {FIX}")
    return Java(path, int(number[1]), version, vendor)


def _property(said: str, name: str) -> str:
    found = re.search(rf"^\s*{re.escape(name)} = (.*)$", said, re.MULTILINE)
    return found[1].strip() if found else ""
