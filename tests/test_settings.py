"""Every LAB_* variable has one home, with its default and its sentence."""

import re
from pathlib import Path

import pytest

from helpers import settings
from helpers.errors import LabError
from helpers.settings import PACES, ROOT, VARIABLES, cache_dir, given, kafka_backend, pace, shown

pytestmark = pytest.mark.usefixtures("no_lab_variables")


@pytest.mark.parametrize("name", VARIABLES)
def test_without_a_value_the_default_holds(monkeypatch, name):
    assert given(name) == VARIABLES[name].default
    monkeypatch.setenv(name, "  ")
    assert given(name) == VARIABLES[name].default


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("LAB_KAFKA", "nonsense"),
        ("LAB_KAFKA_BOOTSTRAP", "localhost"),
        ("LAB_KAFKA_IMAGE", "Apache Kafka"),
        ("LAB_KAFKA_PORT", "80"),
        ("LAB_KAFKA_PORT", "65536"),
        ("LAB_PACE", "fast"),
        ("LAB_SPARK_MASTER", "local[0]"),
        ("LAB_SPARK_MASTER", "nonsense://here"),
    ],
)
def test_a_value_that_makes_no_sense_gets_a_sentence_with_the_way_out(monkeypatch, name, value):
    monkeypatch.setenv(name, value)
    with pytest.raises(LabError) as caught:
        given(name)
    assert str(caught.value) == f"{name} is {value!r}: use {VARIABLES[name].words}."


@pytest.mark.parametrize("name", [name for name, variable in VARIABLES.items() if variable.default])
def test_every_default_makes_sense(name):
    assert not settings.fault(name, VARIABLES[name].default)


def test_blanks_and_capitals_do_not_matter_where_words_are_chosen_from(monkeypatch):
    monkeypatch.setenv("LAB_KAFKA", " Embedded ")
    monkeypatch.setenv("LAB_PACE", "FULL")
    assert kafka_backend() == "embedded"
    assert pace() == "full" and pace() in PACES


@pytest.mark.parametrize(("wanted", "backend"), [("", "external"), ("auto", "external"), ("embedded", "embedded")])
def test_an_address_of_ones_own_decides_unless_another_broker_is_asked_for(monkeypatch, wanted, backend):
    monkeypatch.setenv("LAB_KAFKA", wanted)
    monkeypatch.setenv("LAB_KAFKA_BOOTSTRAP", "localhost:9092")
    assert kafka_backend() == backend


@pytest.mark.parametrize(
    ("said", "folder"),
    [
        ("", ROOT / ".cache"),
        ("downloads", ROOT / "downloads"),
        ("../shared", ROOT.parent / "shared"),
        ("/var/lab", Path("/var/lab")),
        ("~/lab", Path.home() / "lab"),
    ],
)
def test_a_relative_cache_counts_from_the_checkout_whatever_folder_we_are_in(monkeypatch, tmp_path, said, folder):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LAB_CACHE", said)
    assert cache_dir() == folder.resolve()


def test_paths_are_shown_as_a_reader_of_the_checkout_knows_them():
    assert shown(ROOT / "build" / "report.md") == "build/report.md"
    assert shown(Path("/var/lab")) == "/var/lab"


def test_every_variable_that_is_named_anywhere_is_known_and_every_known_one_is_in_the_readme():
    code = [*(ROOT / "helpers").rglob("*.py"), ROOT / "README.md", *(ROOT / "notebooks").glob("*.md")]
    named = {path: set(re.findall(r"LAB_[A-Z_]+(?<!_)", path.read_text())) for path in code}
    assert {name for names in named.values() for name in names} == set(VARIABLES)
    assert named[ROOT / "README.md"] >= set(VARIABLES)
