"""The doctor finds what is wrong, says what to do, and its answer is the exit code."""

import os
import platform
import re
import shutil
import sys
from collections import namedtuple
from pathlib import Path

import pytest

from helpers.engines import checks, jars, machine, settings_checks
from helpers.engines import doctor as doctor_module
from helpers.engines.checks import FAIL, OK, WARNING, Check
from helpers.engines.doctor import doctor
from helpers.settings import ROOT

pytestmark = pytest.mark.usefixtures("no_lab_variables")


@pytest.fixture
def no_docker(monkeypatch, closed_port):
    monkeypatch.setenv("DOCKER_HOST", f"tcp://127.0.0.1:{closed_port}")


def check_of(name: str) -> Check:
    return next(check for check in settings_checks.variables() if check.what == name)


def test_there_is_a_line_for_every_need_in_order(no_docker):
    said = []
    doctor(said.append)
    needs = ["Python", "Packages", "Java", "Memory", "Cores", "Slots", "Docker", "Jars", "Free disk", "Settings"]
    lines = [line for line in said if line.startswith("[")]
    assert [need for need, line in zip(needs, lines, strict=True) if need in line] == needs
    assert len({line.index(need) for need, line in zip(needs, lines, strict=True)}) == 1  # a column


@pytest.mark.parametrize(("status", "ready"), [(OK, True), (WARNING, True), (FAIL, False)])
def test_only_a_fail_means_not_ready(monkeypatch, status, ready):
    monkeypatch.setattr(
        doctor_module, "examine", lambda: [Check("Python", OK, "3.11"), Check("Java", status, "?", "Do.")]
    )
    said = []
    assert doctor(said.append) is ready
    assert ("Not ready yet: Java" in said[-1]) is not ready


def test_the_fix_stands_indented_below_its_need_and_only_there(monkeypatch):
    monkeypatch.setattr(
        doctor_module, "examine", lambda: [Check("Java", FAIL, "none", "Get one."), Check("Jars", OK, "50")]
    )
    said = []
    doctor(said.append)
    assert re.fullmatch(r"\[ +FAIL +\]  Java  none", said[0])
    assert re.fullmatch(r" +→ Get one\.", said[1])
    assert re.fullmatch(r"\[ +OK +\]  Jars  50", said[2])


@pytest.mark.parametrize("terminal", [True, False])
def test_colour_is_for_terminals_only(monkeypatch, terminal):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr(doctor_module, "examine", lambda: [Check("Java", FAIL, "none")])
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal)
    said = []
    doctor(said.append)
    assert ("\033[" in said[0]) is terminal


def test_an_old_python_is_the_one_thing_to_fix(monkeypatch):
    monkeypatch.setattr(sys, "version_info", (3, 10, 14))
    found = doctor_module.examine()
    assert [(check.what, check.status) for check in found] == [("Python", FAIL)]
    assert "needs Python 3.11 or newer" in found[0].fix


def test_the_packages_are_those_of_the_requirements(monkeypatch):
    monkeypatch.delenv("SPARK_HOME", raising=False)
    assert checks.packages().status == OK


@pytest.mark.parametrize(("installed", "status"), [(None, FAIL), ("0.0.1", WARNING)])
def test_a_package_that_is_absent_or_another_version_is_named(monkeypatch, installed, status):
    real = checks._installed
    monkeypatch.setattr(checks, "_installed", lambda name: installed if name == "kafka-python" else real(name))
    check = checks.packages()
    assert check.status == status
    assert "kafka-python" in check.found
    assert "pip install --require-hashes -r requirements.lock" in check.fix


def test_another_spark_on_the_machine_is_warned_of(monkeypatch):
    monkeypatch.setenv("SPARK_HOME", "/opt/spark-3.5")
    assert checks.packages().status == WARNING
    assert checks.packages().fix == "unset SPARK_HOME"


def test_java_is_shown_with_version_and_vendor(install_java):
    java = install_java("21.0.5", vendor="Eclipse Adoptium")
    assert checks.java_() == Check("Java", OK, f"21.0.5 from Eclipse Adoptium at {java}")


def test_an_old_java_fails_with_the_fix_apart(install_java):
    install_java("11.0.25")
    check = checks.java_()
    assert check.status == FAIL
    assert check.found.endswith("is Java 11.0.25, but Spark 4 needs Java 17 or newer.")
    assert check.fix.startswith("Install a Java 17 or newer")


@pytest.mark.parametrize(("gib", "status"), [(2, FAIL), (4, FAIL), (4.7, WARNING), (6, WARNING), (7.7, OK), (64, OK)])
def test_memory_is_judged_by_what_spark_and_kafka_need(monkeypatch, gib, status):
    monkeypatch.setattr(os, "sysconf", {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": int(gib * 2**18)}.get)
    monkeypatch.setattr(machine, "_cgroup", lambda _: [])
    assert checks.memory().status == status
    assert bool(checks.memory().fix) is (status != OK)


def test_the_limits_of_a_container_count(monkeypatch):
    limits = {"memory.max": [str(4 * 2**30)], "cpu.max": ["100000", "100000"]}
    monkeypatch.setattr(machine, "_cgroup", limits.get)
    assert checks.memory().status == FAIL
    assert (checks.cores().status, checks.cores().found) == (WARNING, "1")


def test_a_system_that_says_nothing_gets_a_warning(monkeypatch):
    def unknown(name):
        raise ValueError("unrecognized configuration name")

    monkeypatch.setattr(os, "sysconf", unknown)
    assert checks.memory().status == WARNING


def test_where_there_is_no_affinity_all_cores_count(monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)  # as on macOS
    monkeypatch.setattr(os, "cpu_count", lambda: 10)
    monkeypatch.setattr(machine, "_cgroup", lambda _: [])
    assert checks.cores() == Check("Cores", OK, "10")


@pytest.mark.parametrize(
    ("master", "status", "found"),
    [
        (None, OK, "4 (slots are threads"),
        ("local", WARNING, "1 (slots"),
        ("local[2]", WARNING, "2 (slots"),
        ("local[8]", OK, "8 (slots"),
        ("local[*]", WARNING, "3 (slots"),
        ("spark://host:7077", OK, "those of spark://host:7077"),
    ],
)
def test_slots_are_threads_and_only_a_master_limits_them(monkeypatch, master, status, found):
    monkeypatch.setattr(settings_checks, "core_count", lambda: 3)
    if master:
        monkeypatch.setenv("LAB_SPARK_MASTER", master)
    assert settings_checks.slots().status == status
    assert settings_checks.slots().found.startswith(found)


def test_without_docker_all_is_well_and_the_embedded_broker_is_announced(no_docker):
    check = settings_checks.docker()
    assert check.status == OK
    assert "the embedded broker will be used" in check.found


def test_docker_forced_but_absent_fails_with_the_way_out(no_docker, monkeypatch):
    monkeypatch.setenv("LAB_KAFKA", "testcontainers")
    assert settings_checks.docker().status == FAIL
    assert "LAB_KAFKA=embedded" in settings_checks.docker().fix


@pytest.mark.parametrize("given", [{"LAB_KAFKA": "embedded"}, {"LAB_KAFKA_BOOTSTRAP": "localhost:9092"}])
def test_docker_is_not_asked_when_it_is_not_wanted(monkeypatch, given):
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("helpers.engines.container.engine_fault", lambda: pytest.fail("Docker was asked"))
    assert settings_checks.docker().status == OK
    assert settings_checks.docker().found.startswith("not needed")


def test_missing_jars_are_a_warning_because_they_will_be_fetched(monkeypatch, tmp_path):
    monkeypatch.setenv("LAB_CACHE", str(tmp_path))
    check, every = checks.jars_(), len(jars.locked())
    assert (check.status, check.found) == (WARNING, f"{every} of {every} are not here yet")
    assert "will be fetched on first use" in check.fix


def test_damaged_jars_are_a_warning_because_they_will_be_fetched_again(monkeypatch, tmp_path):
    monkeypatch.setenv("LAB_CACHE", str(tmp_path))
    name = next(iter(jars.locked()))
    (tmp_path / "jars" / name).parent.mkdir(parents=True)
    (tmp_path / "jars" / name).write_bytes(b"torn")
    check = checks.jars_()
    assert (check.status, check.found) == (WARNING, f"damaged: {name}")
    assert "will be fetched again" in check.fix


def test_a_full_disk_fails_and_names_the_place(monkeypatch):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(0, 0, (1 if path == ROOT else 50) * 2**30))
    check = checks.disk()
    assert check.status == FAIL
    assert f"Free 2 GiB at {ROOT} (checkout);" in check.fix


def test_a_folder_that_cannot_be_written_fails(monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: path != ROOT)
    assert checks.disk().status == FAIL
    assert f"cannot write to {ROOT} (checkout)" in checks.disk().found


@pytest.mark.parametrize(
    ("release", "checkout", "slow"),
    [
        ("5.15.153.1-microsoft-standard-WSL2", "/mnt/c/Users/me/lab", True),
        ("5.15.153.1-microsoft-standard-WSL2", "/home/me/lab", False),
        ("5.15.153.1-microsoft-standard-WSL2", "/mnt/data/lab", False),
        ("6.1.0-40-amd64", "/mnt/c/lab", False),
    ],
)
def test_a_checkout_on_a_windows_drive_is_slow(monkeypatch, release, checkout, slow):
    monkeypatch.setattr(platform, "release", lambda: release)
    assert checks.on_a_windows_drive(Path(checkout)) is slow


def test_a_slow_drive_is_warned_of_with_the_way_out(monkeypatch):
    monkeypatch.setattr(checks, "on_a_windows_drive", lambda path: path == ROOT)
    assert checks.disk().status == WARNING
    assert "into your Linux home folder" in checks.disk().fix


def test_a_cache_elsewhere_needs_room_too(monkeypatch, tmp_path):
    monkeypatch.setenv("LAB_CACHE", str(tmp_path / "not" / "there" / "yet"))
    assert "(LAB_CACHE)" in checks.disk().found


def test_with_no_variable_set_the_settings_are_fine():
    assert [check.status for check in settings_checks.variables()] == [OK]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("LAB_KAFKA", "nonsense"),
        ("LAB_KAFKA", "external"),  # but no LAB_KAFKA_BOOTSTRAP
        ("LAB_KAFKA_BOOTSTRAP", "localhost"),
        ("LAB_KAFKA_BOOTSTRAP", "http://localhost:9092"),
        ("LAB_KAFKA_BOOTSTRAP", "localhost:99999"),
        ("LAB_KAFKA_IMAGE", "Apache Kafka"),
        ("LAB_KAFKA_PORT", "80"),
        ("LAB_KAFKA_PORT", "many"),
        ("LAB_PACE", "fast"),
        ("LAB_SPARK_MASTER", "local[0]"),
        ("LAB_SPARK_MASTER", "localhost:7077"),
        ("LAB_CACHE", __file__),
    ],
)
def test_a_variable_that_makes_no_sense_fails_with_a_fix(monkeypatch, name, value):
    monkeypatch.setenv(name, value)
    assert check_of(name).status == FAIL
    assert check_of(name).fix


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("LAB_KAFKA", "Embedded"),
        ("LAB_KAFKA_IMAGE", "local/kafka:1.2"),
        ("LAB_KAFKA_PORT", "9092"),
        ("LAB_PACE", "full"),
        ("LAB_SPARK_MASTER", "local[8]"),
        ("LAB_SPARK_MASTER", "spark://host:7077"),
        ("LAB_CACHE", "/tmp/not/there/yet"),
        ("LAB_CACHE", "downloads"),  # counts from the checkout, wherever a notebook runs
        ("LAB_CACHE", "~/lab-cache"),
    ],
)
def test_a_variable_that_makes_sense_is_fine(monkeypatch, name, value):
    monkeypatch.setenv(name, value)
    assert settings_checks.variables() == [Check("Settings", OK, name)]


def test_a_misspelt_variable_is_noticed(monkeypatch):
    monkeypatch.setenv("LAB_KAKFA", "embedded")
    check = check_of("LAB_KAKFA")
    assert (check.status, check.found) == (WARNING, "'embedded', but nothing reads it")
    assert "LAB_KAFKA," in check.fix


def test_a_broker_of_ones_own_must_answer(monkeypatch, taken_port, closed_port):
    monkeypatch.setenv("LAB_KAFKA_BOOTSTRAP", f"127.0.0.1:{closed_port}")
    assert check_of("LAB_KAFKA_BOOTSTRAP").status == FAIL
    monkeypatch.setenv("LAB_KAFKA_BOOTSTRAP", f"127.0.0.1:{closed_port}, 127.0.0.1:{taken_port}")
    assert settings_checks.variables()[0].status == OK
