"""What several tests share. Nothing here starts a broker unless a test asks for one."""

import os
import shutil
import socket
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

import psutil
import pytest

BACKENDS = ["embedded", pytest.param("testcontainers", marks=pytest.mark.docker)]
KILLS, NIGHTLY_KILLS = 3, 10  # of a query, at random moments

# What a real Java prints to stderr for `-XshowSettings:properties -version`, shortened.
JAVA_SAYS = """\
Property settings:
    java.home = /opt/jdk
    java.vendor = {vendor}
    java.vendor.url = https://example.invalid/
    java.version = {version}
    java.version.date = 2024-10-15

openjdk version "{version}" 2024-10-15
"""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--nightly", action="store_true", help=f"{NIGHTLY_KILLS} random kills instead of {KILLS}")


@pytest.fixture
def kills(request: pytest.FixtureRequest) -> int:
    """How often a query is killed at a random moment: chance finds more in a night than in a minute."""
    return NIGHTLY_KILLS if request.config.getoption("--nightly") else KILLS


@pytest.fixture
def no_lab_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on the machine of somebody who has set nothing."""
    for name in [name for name in os.environ if name.startswith("LAB_")]:
        monkeypatch.delenv(name)


@pytest.fixture
def install_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Put a stand-in for Java at JAVA_HOME: it says its version, and runs `program` when given a jar."""

    def install(version: str = "17.0.15", vendor: str = "Debian", program: str = "exit 1") -> Path:
        home = tmp_path / f"jdk-{version}"
        (home / "bin").mkdir(parents=True)
        (home / "says").write_text(JAVA_SAYS.format(version=version, vendor=vendor))
        java = home / "bin" / "java"
        java.write_text(f'#!/bin/sh\nif [ "$1" != -jar ]; then cat "{home}/says" >&2; exit 0; fi\n{program}\n')
        java.chmod(0o755)
        monkeypatch.setenv("JAVA_HOME", str(home))
        return java

    return install


@pytest.fixture
def closed_port() -> int:
    """A loopback port on which nothing listens."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


@pytest.fixture
def taken_port():
    """A loopback port on which somebody else listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture(scope="module")
def kafka():
    """An embedded broker for the tests of one file."""
    from helpers.engines.kafka import start_kafka

    with start_kafka("embedded") as broker:
        yield broker


@pytest.fixture(scope="module")
def container():
    """A broker in a container for the tests of one file."""
    from helpers.engines.kafka import start_kafka

    with start_kafka("testcontainers") as broker:
        yield broker


@pytest.fixture(params=BACKENDS)
def each_kafka(request: pytest.FixtureRequest):
    """Both kinds of broker in turn, for what depends on the kind."""
    return request.getfixturevalue("kafka" if request.param == "embedded" else "container")


def eventually(holds: Callable[[], bool], seconds: float) -> bool:
    """True as soon as it holds, False if it does not within so many seconds."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


def gone(pid: int, seconds: float = 10) -> bool:
    """The process has ended, or does so within so many seconds."""

    def ended() -> bool:
        return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE

    return eventually(ended, seconds)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Where there is no Docker or no browser, say what is skipped; in CI (LAB_REQUIRE_…) that is a failure."""
    for marker, fault in (("docker", _docker_fault), ("browser", _browser_fault)):
        if item.get_closest_marker(marker) and fault():
            needed = os.environ.get(f"LAB_REQUIRE_{marker.upper()}") == "1"
            (pytest.fail if needed else pytest.skip)(fault())


@cache
def _docker_fault() -> str:
    from helpers.engines.container import engine_fault

    fault = engine_fault()
    return f"no Docker engine answers ({fault}): the Testcontainers path is not tested here" if fault else ""


@cache
def _browser_fault() -> str:
    return "" if chromium() else "there is no Chromium: JupyterLab in a browser is not tested here"


def chromium() -> str | None:
    """The system's Chromium or Chrome."""
    names = ("chromium", "chromium-browser", "google-chrome", "chrome")
    return next((path for name in names if (path := shutil.which(name))), None)
