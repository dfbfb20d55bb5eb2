"""What the doctor says of the LAB_* variables, and of what they ask for: slots, Docker, a broker of one's own."""

import re
import socket

from helpers.engines.checks import FAIL, OK, WARNING, Check, existing
from helpers.engines.machine import core_count
from helpers.errors import LabError
from helpers.settings import SLOTS, VARIABLES, cache_dir, fault, given, kafka_backend, said


def slots() -> Check:
    """A slot is a thread, so cores do not limit them: only a master of the user's own does."""
    master = _given("LAB_SPARK_MASTER")
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
    backend = _backend()
    if backend == "embedded":
        return Check("Docker", OK, "not needed: LAB_KAFKA=embedded")
    if backend == "external":
        return Check("Docker", OK, "not needed: a broker of your own is used")
    problem = _engine_fault()
    if not problem:
        return Check("Docker", OK, "an engine answers: Kafka will run in a container")
    if backend == "testcontainers":
        fix = "Start Docker, or set LAB_KAFKA=embedded to run a real broker without it."
        return Check("Docker", FAIL, f"LAB_KAFKA=testcontainers, but no engine answers ({problem})", fix)
    return Check("Docker", OK, "no engine answers: the embedded broker will be used")


def variables() -> list[Check]:
    """A line for each variable that makes no sense, or one line if all do."""
    found = [check for name, value in said().items() if (check := _variable(name, value))]
    if _backend() == "external" and "LAB_KAFKA_BOOTSTRAP" not in said():
        fix = "Set it to your broker, for example LAB_KAFKA_BOOTSTRAP=localhost:9092."
        found.append(Check("LAB_KAFKA", FAIL, "external, but LAB_KAFKA_BOOTSTRAP is not set", fix))
    return found or [Check("Settings", OK, ", ".join(said()) or "no LAB_* variable is set, and none is needed")]


def _variable(name: str, value: str) -> Check | None:
    """What is wrong with this variable; None if nothing is."""
    if name not in VARIABLES:
        return Check(name, WARNING, f"{value!r}, but nothing reads it", f"There are {', '.join(VARIABLES)}.")
    if use := fault(name, value):
        return Check(name, FAIL, f"{value!r} makes no sense", f"{use[0].upper()}{use[1:]}.")
    if name == "LAB_CACHE" and not existing(cache_dir()).is_dir():
        return Check(name, FAIL, f"{value!r} is not a folder", "Name a folder, or unset it.")
    used = name == "LAB_KAFKA_BOOTSTRAP" and _backend() == "external"
    if used and not any(_answers(server.strip()) for server in value.split(",")):
        fix = "Start that broker or correct the address; unset it to let the lab start one."
        return Check(name, FAIL, f"nothing answers at {value}", fix)
    return None


def _given(name: str) -> str:
    """What a variable says; its default if that makes no sense, which has a line of its own."""
    try:
        return given(name)
    except LabError:
        return VARIABLES[name].default


def _backend() -> str:
    """The kind of broker that start_kafka() would go for."""
    try:
        return kafka_backend()
    except LabError:
        return _given("LAB_KAFKA")


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
