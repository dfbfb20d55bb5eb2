"""Jars are pinned, verified, and never half-fetched."""

import hashlib
import re
import shutil
import threading
from pathlib import Path
from xml.etree import ElementTree

import pytest

from helpers.engines import jars
from helpers.errors import LabError
from helpers.settings import ROOT

pytestmark = pytest.mark.usefixtures("no_lab_variables")

JARS = {"connector/one-1.0.jar": b"first", "broker/two-2.0.jar": b"second", "broker/three-3.0.jar": b"third"}

CONNECTOR = "spark-sql-kafka-0-10_2.13"
BROKER = ("broker/three-3.0.jar", "broker/two-2.0.jar")

# Stand-ins for Ivy: `$into` is the folder that jars.py told it to fill.
FIND_FOLDER = 'for word in "$@"; do [ "$last" = -retrieve ] && into="${word%%/\\[conf\\]*}"; last="$word"; done\n'
FETCH = FIND_FOLDER + (
    'mkdir -p "$into/connector" "$into/broker"\nprintf first >"$into/connector/one-1.0.jar"\n'
    'printf second >"$into/broker/two-2.0.jar"\nprintf third >"$into/broker/three-3.0.jar"\n'
)
FETCH_ALTERED = FETCH + 'printf "<html>log in to this wifi</html>" >"$into/broker/two-2.0.jar"\n'
FETCH_PART = FETCH + 'rm "$into/broker/two-2.0.jar"\n'


@pytest.fixture
def cache(tmp_path, monkeypatch) -> Path:
    """An empty cache of our own; the real one is out of reach."""
    monkeypatch.setenv("LAB_CACHE", str(tmp_path / "cache"))
    assert jars.jars_dir() == tmp_path / "cache" / "jars"
    return jars.jars_dir()


@pytest.fixture
def three_jars(cache, monkeypatch) -> Path:
    """Three small jars are pinned, and all three are in the cache."""
    monkeypatch.setattr(jars, "locked", lambda: {name: sha256(data) for name, data in JARS.items()})
    for name, data in JARS.items():
        (cache / name).parent.mkdir(parents=True, exist_ok=True)
        (cache / name).write_bytes(data)
    return cache


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def read(lock: Path) -> dict[str, str]:
    return {name: sha for sha, name in (line.split("  ") for line in lock.read_text().splitlines())}


def contents(cache: Path) -> dict[str, bytes]:
    return {str(path.relative_to(cache)): path.read_bytes() for path in cache.rglob("*.jar")}


def leftovers(cache: Path) -> list[str]:
    """What a fetch left beside the jars, its lock and its log."""
    return [path.name for path in cache.iterdir() if path.name not in ("connector", "broker", ".lock", "fetch.log")]


def test_an_empty_cache_lacks_every_jar_of_the_lock_file(cache):
    assert jars.faults() == dict.fromkeys(jars.locked(), "missing")


def test_a_complete_cache_has_no_faults_and_needs_no_java(three_jars, monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "no java here"))
    assert jars.faults() == {}
    jars.ensure(say=pytest.fail)


def test_missing_and_damaged_jars_are_told_apart(three_jars):
    (three_jars / "connector/one-1.0.jar").unlink()
    (three_jars / "broker/two-2.0.jar").write_bytes(b"secono")  # the same length
    assert jars.faults() == {"connector/one-1.0.jar": "missing", "broker/two-2.0.jar": "damaged"}


def test_damaged_and_missing_jars_are_fetched_again_and_said(three_jars, install_java):
    install_java(program=FETCH)
    (three_jars / "connector/one-1.0.jar").unlink()
    (three_jars / "broker/two-2.0.jar").write_bytes(b"torn")
    said = []
    jars.ensure(said.append)
    assert contents(three_jars) == JARS
    assert leftovers(three_jars) == []
    assert any("two-2.0.jar is damaged" in line and "fetching it again" in line for line in said)
    assert any("fetching 2 of 3 files" in line for line in said)


@pytest.mark.parametrize("program", ["echo no route to host; exit 1", FETCH_PART], ids=["no network", "cut off"])
def test_a_fetch_that_fails_says_so_and_changes_nothing(three_jars, install_java, program):
    install_java(program=program)
    (three_jars / "broker/three-3.0.jar").write_bytes(b"torn")
    before = contents(three_jars)
    with pytest.raises(
        LabError,
        match=r"Could not fetch the jars .*\(. of 3 are missing\).*Is there a network\?.*run the same command again",
    ):
        jars.ensure(say=lambda _: None)
    assert contents(three_jars) == before
    assert leftovers(three_jars) == []


def test_what_ivy_said_is_kept_for_whoever_wants_it(three_jars, install_java):
    install_java(program="echo no route to host; exit 1")
    (three_jars / "broker/three-3.0.jar").unlink()
    with pytest.raises(LabError, match=re.escape(str(three_jars / "fetch.log"))):
        jars.ensure(say=lambda _: None)
    assert "no route to host" in (three_jars / "fetch.log").read_text()


def test_a_download_that_does_not_match_its_sha256_is_thrown_away(three_jars, install_java):
    install_java(program=FETCH_ALTERED)
    (three_jars / "broker/two-2.0.jar").unlink()
    with pytest.raises(LabError, match=r"broker/two-2\.0\.jar: .*does not match its sha256.*thrown away"):
        jars.ensure(say=lambda _: None)
    assert jars.faults() == {"broker/two-2.0.jar": "missing"}
    assert leftovers(three_jars) == []


def test_two_notebooks_started_at_once_fetch_once(three_jars, install_java, tmp_path):
    shutil.rmtree(three_jars)
    install_java(program=f'echo fetch >>"{tmp_path}/fetches"\nsleep 0.5\n{FETCH}')
    both = [threading.Thread(target=jars.ensure, args=(lambda _: None,)) for _ in range(2)]
    for one in both:
        one.start()
    for one in both:
        one.join()
    assert (tmp_path / "fetches").read_text() == "fetch\n"
    assert jars.faults() == {}


@pytest.mark.engine
def test_without_a_network_the_real_ivy_gets_nothing_and_it_is_said(cache, monkeypatch, closed_port):
    nowhere = [f"-D{kind}.proxyHost=127.0.0.1 -D{kind}.proxyPort={closed_port}" for kind in ("http", "https")]
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", " ".join(nowhere))
    with pytest.raises(LabError, match=rf"\({len(jars.locked())} of {len(jars.locked())} are missing\)"):
        jars.ensure(say=lambda _: None)
    assert contents(cache) == {}
    assert leftovers(cache) == []


@pytest.fixture
def lock(three_jars, monkeypatch, tmp_path) -> Path:
    """A lock file of our own: one jar as it is today, one as it was once, one too few and one too many."""
    lock = tmp_path / "jars.lock"
    pins = {"connector/one-1.0.jar": b"another", "broker/three-3.0.jar": b"third", "broker/old-1.jar": b"old"}
    lock.write_text("".join(f"{sha256(data)}  {name}\n" for name, data in pins.items()))
    monkeypatch.setattr(jars, "LOCK", lock)
    monkeypatch.setattr(jars, "locked", jars.cache(lambda: read(lock)))
    monkeypatch.setattr(jars, "_recipe", lambda: {"one": "1.0", "two": "2.0", "three": "3.0"})
    return lock


def test_the_lock_file_is_made_anew_from_the_recipe_and_what_changed_is_said(lock, install_java):
    install_java(program=FETCH)
    said = []
    jars.relock(said.append)
    assert list(read(lock).items()) == [(name, sha256(JARS[name])) for name in ("connector/one-1.0.jar", *BROKER)]
    assert jars.locked() == read(lock)
    assert said == [
        "jars.lock: broker/old-1.jar removed",
        "jars.lock: broker/two-2.0.jar added",
        "jars.lock: connector/one-1.0.jar has another sha256",
        "jars.lock: 3 files, written",
    ]
    jars.relock(said.append)
    assert said[4:] == ["jars.lock: 3 files, as before"]


@pytest.mark.parametrize("program", [f"{FETCH}exit 1", FETCH_PART], ids=["Ivy failed", "one jar is missing"])
def test_a_lock_file_is_not_made_from_half_a_download(lock, install_java, program):
    install_java(program=program)
    before = lock.read_text()
    with pytest.raises(LabError, match=r"The lock file was not changed.*Is there a network"):
        jars.relock(pytest.fail)
    assert lock.read_text() == before


def test_the_versions_of_kafka_and_its_connector_are_stated_once():
    versions = re.compile("|".join(rf"\b{re.escape(jars.version_of(name))}\b" for name in ("kafka_2.13", CONNECTOR)))
    files = [ROOT / "README.md", ROOT / "Makefile", ROOT / "environment.yml"]
    files += [path for folder in ("helpers", "tests", ".ci") for path in (ROOT / folder).rglob("*") if path.is_file()]
    said = {path for path in files if path.suffix != ".pyc" and versions.search(path.read_text(errors="replace"))}
    assert said == {jars.RECIPE, jars.LOCK}


def test_every_jar_that_the_recipe_names_is_pinned():
    named = [
        f"{one.attrib['conf'].split('->')[0]}/{one.attrib['name']}-{one.attrib['rev']}.jar"
        for one in ElementTree.parse(jars.RECIPE).iter("dependency")
    ]
    assert len(named) >= 6
    assert set(named) <= set(jars.locked())


def test_the_lock_file_is_what_sha256sum_reads():
    lines = jars.LOCK.read_text().splitlines()
    assert all(re.fullmatch(r"[0-9a-f]{64}  (connector|broker)/[\w.-]+\.jar", line) for line in lines)
    assert len(jars.locked()) == len(lines)


def test_the_cache_is_in_the_checkout_unless_moved():
    assert jars.jars_dir() == ROOT / ".cache" / "jars"
