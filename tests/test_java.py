"""The right Java is found, and the wrong one is explained."""

import subprocess
import sys

import pytest

from helpers.engines.java import OLDEST, find_java
from helpers.errors import LabError
from helpers.settings import ROOT


def test_the_java_of_this_machine_is_found_with_its_version_and_vendor():
    java = find_java()
    assert java.major >= OLDEST
    assert java.version.startswith(str(java.major))
    assert java.vendor


def test_without_any_java_the_sentence_says_how_to_install_one(monkeypatch, tmp_path):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LabError, match=r"no Java on this machine.*apt install openjdk-17.*brew install"):
        find_java()


def test_a_java_home_without_java_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(LabError, match=f"JAVA_HOME is {tmp_path}, but there is no bin/java in it"):
        find_java()


@pytest.mark.parametrize("version", ["11.0.25", "1.8.0_432"])
def test_an_old_java_is_refused_with_its_version(install_java, version):
    java = install_java(version)
    with pytest.raises(LabError) as caught:
        find_java()
    assert f"{java} is Java {version}, but Spark 4 needs Java 17 or newer. Install" in str(caught.value)


@pytest.mark.parametrize(("version", "major"), [("17.0.15", 17), ("21-ea", 21), ("25", 25)])
def test_a_newer_java_is_taken(install_java, version, major):
    path = install_java(version, vendor="Eclipse Adoptium")
    java = find_java()
    assert (java.path, java.major, java.version, java.vendor) == (str(path), major, version, "Eclipse Adoptium")


def test_java_home_wins_over_the_path(install_java):
    path_java = find_java().path
    home_java = str(install_java("17.0.99"))
    assert find_java().path == home_java != path_java


def test_a_java_that_says_nothing_is_explained(install_java):
    java = install_java()
    java.write_text("#!/bin/sh\nexit 1\n")
    with pytest.raises(LabError, match="did not say which version it is"):
        find_java()


def test_a_java_that_cannot_run_is_explained(install_java):
    java = install_java()
    java.write_bytes(b"\x7fELF, but not for this machine")
    with pytest.raises(LabError, match=r"does not run: .*Install"):
        find_java()


def test_in_a_notebook_an_error_is_its_sentence_and_no_stack():
    cell = "from helpers.errors import LabError\nraise LabError('Do this next.')"
    shown = subprocess.run([sys.executable, "-m", "IPython", "-c", cell], cwd=ROOT, capture_output=True, text=True)
    assert shown.returncode != 0
    assert (shown.stdout + shown.stderr).strip() == "LabError: Do this next."
