"""A learner's copies of the lessons: what is theirs is never lost, and what is not theirs stays up to date."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

import pytest

from helpers.__main__ import main
from helpers.commands import lessons
from helpers.commands.lessons import FIRST, MY_LESSONS, Copies
from helpers.errors import LabError
from helpers.settings import NOTEBOOKS, ROOT

NAMES = ["00_start_here.ipynb", "03_stream_the_shuffle.ipynb"]


class Checkout:
    """Two lessons, and the copies of them."""

    def __init__(self, folder: Path) -> None:
        self.originals, self.mine = folder / "notebooks", folder / "my_lessons"
        self.originals.mkdir()
        for name in NAMES:
            (self.originals / name).write_text(f"{name}, first edition")

    @property
    def copies(self) -> Copies:
        """As a new command finds them."""
        return Copies(self.originals, self.mine)

    def texts(self) -> dict[str, str]:
        return {path.name: path.read_text() for path in self.mine.glob("*.ipynb")}


@pytest.fixture
def checkout(tmp_path) -> Checkout:
    return Checkout(tmp_path)


def test_every_lesson_is_copied_as_it_is(checkout):
    assert checkout.copies.update() == []
    assert checkout.texts() == {name: f"{name}, first edition" for name in NAMES}


def test_a_copy_that_was_deleted_comes_back(checkout):
    checkout.copies.update()
    (checkout.mine / FIRST).unlink()
    checkout.copies.update()
    assert checkout.texts()[FIRST] == f"{FIRST}, first edition"


def test_a_copy_that_nobody_touched_follows_its_original(checkout):
    for edition in ("first", "second", "third"):
        (checkout.originals / FIRST).write_text(edition)
        assert checkout.copies.update() == []
        assert checkout.texts()[FIRST] == edition


def test_a_copy_that_was_touched_never_changes_and_a_sentence_says_that_it_is_out_of_date(checkout):
    checkout.copies.update()
    (checkout.mine / FIRST).write_text("my own")
    assert checkout.copies.update() == [], "its original is the same"
    (checkout.originals / FIRST).write_text("second edition")
    for _ in range(2):
        (sentence,) = checkout.copies.update()
        assert FIRST in sentence and "make fresh LESSON=00" in sentence
        assert checkout.texts()[FIRST] == "my own"


@pytest.mark.parametrize("record", [None, "", "[1]", '{"00_start_here.ipynb": 3}'])
def test_without_a_record_what_differs_counts_as_the_learners_own(checkout, record):
    checkout.copies.update()
    (checkout.originals / FIRST).write_text("second edition")
    (path,) = checkout.mine.glob(".*.json")
    path.write_text(record) if record is not None else path.unlink()
    checkout.copies.update()
    assert checkout.texts()[FIRST] == f"{FIRST}, first edition"


def test_a_copy_that_equals_its_original_is_followed_again_whatever_the_record_says(checkout):
    checkout.copies.update()
    (path,) = checkout.mine.glob(".*.json")
    path.unlink()
    checkout.copies.update()
    (checkout.originals / FIRST).write_text("second edition")
    checkout.copies.update()
    assert checkout.texts()[FIRST] == "second edition"


# ---- a fresh one


@pytest.mark.parametrize("name", ["03", "3", "03_stream_the_shuffle", "notebooks/03_stream_the_shuffle.ipynb"])
def test_a_fresh_lesson_lies_beside_the_learners_own(checkout, name):
    checkout.copies.update()
    (checkout.mine / NAMES[1]).write_text("my own")
    said = checkout.copies.fresh(name)
    texts = checkout.texts()
    assert texts.pop(NAMES[1]) == f"{NAMES[1]}, first edition"
    (kept,) = set(texts) - set(NAMES)
    assert texts[kept] == "my own"
    assert re.fullmatch(r"03_stream_the_shuffle_mine_\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d\.ipynb", kept)
    assert kept in said


def test_however_often_one_asks_for_a_fresh_one_nothing_is_lost(checkout):
    own = [f"my own, take {number}" for number in range(4)]
    for text in own:  # all within a second
        checkout.copies.update()
        (checkout.mine / FIRST).write_text(text)
        checkout.copies.fresh("00")
    assert set(own) <= set(checkout.texts().values())


def test_a_fresh_one_follows_its_original_again(checkout):
    checkout.copies.update()
    (checkout.mine / FIRST).write_text("my own")
    (checkout.originals / FIRST).write_text("second edition")
    checkout.copies.fresh("00")
    (checkout.originals / FIRST).write_text("third edition")
    assert checkout.copies.update() == []
    assert checkout.texts()[FIRST] == "third edition"


def test_a_fresh_one_where_nothing_is_touched_leaves_no_second_file(checkout):
    checkout.copies.fresh("00")
    checkout.copies.fresh("00")
    assert set(checkout.texts()) == {FIRST}


@pytest.mark.parametrize("name", ["99", "", "no such", "../../etc"])
def test_no_such_lesson_gets_a_sentence(checkout, name):
    with pytest.raises(LabError, match=r"There is no lesson '.*'\. Name one from 00 to 03, for example: make fresh"):
        checkout.copies.fresh(name)


@pytest.mark.parametrize(("words", "sentence"), [([], "Which lesson"), (["99"], "There is no lesson '99'")])
def test_the_command_says_what_it_needs(capsys, words, sentence):
    assert main(["fresh", *words]) == 1
    assert f"Sorry: {sentence}" in capsys.readouterr().err


# ---- the real lessons


def test_a_lesson_is_as_deep_as_its_copy_and_links_to_nothing_that_is_not_there():
    assert MY_LESSONS.parent == NOTEBOOKS.parent
    names = {path.name for path in NOTEBOOKS.glob("*.ipynb")}
    for path in NOTEBOOKS.glob("*.ipynb"):
        for cell in json.loads(path.read_text())["cells"]:
            links = re.findall(r"\]\(([^)#\s]+)", "".join(cell["source"])) if cell["cell_type"] == "markdown" else []
            for link in (link for link in links if "://" not in link):
                target = (MY_LESSONS / unquote(link)).resolve()
                there = target.name in names if target.parent == MY_LESSONS else target.exists()
                assert there, f"{path.name} links to {link}, which a copy in {MY_LESSONS.name} does not reach"


def test_the_first_lesson_is_the_one_that_opens():
    assert min(path.name for path in NOTEBOOKS.glob("*.ipynb")) == FIRST


@pytest.mark.skipif(not shutil.which("git"), reason="there is no git")
def test_no_copy_is_ever_a_tracked_or_a_new_file_to_git(tmp_path):
    def git(*words: str) -> str:
        identity = ["-c", "user.name=x", "-c", "user.email=x@example.invalid"]
        return subprocess.run(
            ["git", *identity, *words], cwd=tmp_path, check=True, capture_output=True, text=True
        ).stdout

    checkout = Checkout(tmp_path)
    shutil.copy(ROOT / ".gitignore", tmp_path)
    git("init", "-q")
    git("add", ".")
    git("commit", "-q", "-m", "the lessons")
    checkout.copies.update()
    (checkout.mine / FIRST).write_text("my own")
    checkout.copies.fresh("00")
    assert len(checkout.texts()) == 3
    assert git("status", "--porcelain") == ""


def test_lessons_that_cannot_be_copied_get_a_sentence(monkeypatch, tmp_path):
    (tmp_path / "my_lessons").write_text("a file where the folder should be")
    monkeypatch.setattr(lessons.Copies.__init__, "__defaults__", (NOTEBOOKS, tmp_path / "my_lessons"))
    with pytest.raises(LabError, match="The lessons cannot be copied to "):
        lessons.lab([])


def test_what_is_out_of_date_is_said_before_jupyterlab_takes_over():
    code = (
        "import sys; from helpers.commands import lessons\n"
        "lessons.Copies.update = lambda self: ['a sentence']\n"
        f"sys.executable = {shutil.which('true')!r}\n"
        "lessons.lab([])"
    )
    env = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=env, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert run.stdout == "a sentence\n"
