"""A learner's first minutes: JupyterLab as `make lab` starts it, in a real browser. nbval runs whole lessons."""

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urljoin

import nbformat
import pytest
from conftest import chromium, eventually
from nbformat import NotebookNode
from playwright.sync_api import Locator, Page, expect, sync_playwright
from test_commands import Command, LabServer, lab_settings

from helpers.settings import BUILD, ROOT, cache_dir

pytestmark = [pytest.mark.engine, pytest.mark.browser]

LESSON = "my_lessons/00_start_here.ipynb"
SHOTS = BUILD / "shots"  # for whoever wants to look
MINUTE = 60_000  # milliseconds, as Playwright counts
PATIENCE = 4 * 60  # seconds for a cell, on a slow and busy machine
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
SETTINGS = {"notebook-extension/tracker": {"windowingMode": "none"}}  # cells outside the window are there, too
# What a cell shows now: how many outputs, which pictures, and how high it is.
LOOK = """cell => {
    const outputs = [...cell.querySelectorAll('.jp-OutputArea-child')];
    const pictures = [...cell.querySelectorAll('.jp-OutputArea-output img')].map(img => img.src);
    return {outputs: outputs.length, pictures, high: cell.querySelector('.jp-OutputArea')?.offsetHeight ?? 0};
}"""


def git(tree: Path, *words: str) -> str:
    command = ["git", "-c", "user.name=x", "-c", "user.email=x@example.invalid", *words]
    return subprocess.run(command, cwd=tree, check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def tree(tmp_path_factory) -> Path:
    """A checkout of its own, in which git sees every change."""
    copy = tmp_path_factory.mktemp("browser") / "checkout"
    copy.mkdir()
    for name in ("helpers", "notebooks", "data"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints"))
    for name in (".gitignore", "requirements.txt"):
        shutil.copy(ROOT / name, copy)
    git(copy, "init", "-q")
    git(copy, "add", ".")
    git(copy, "commit", "-q", "-m", "the series")
    return copy


@pytest.fixture(scope="module")
def server(tree) -> Iterator[LabServer]:
    args, places = lab_settings(tree.parent)
    for name, values in SETTINGS.items():
        path = Path(places["JUPYTERLAB_SETTINGS_DIR"], "@jupyterlab", f"{name}.jupyterlab-settings")
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(values))
    words = [sys.executable, "-m", "helpers", "lab", *args.split()]
    command = Command(words, tree.parent / "command", tree, LAB_CACHE=str(cache_dir()), LAB_PACE="quick", **places)
    try:
        yield LabServer(command)
    finally:
        command.kill()


@pytest.fixture(scope="module")
def page(server) -> Iterator[Page]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        page = browser.new_page(viewport={"width": 1400, "height": 1000})
        page.set_default_timeout(2 * MINUTE)
        page.goto(server.url)
        yield page
        browser.close()


@pytest.fixture(scope="module")
def lesson(page, tree) -> "Lesson":
    return Lesson(page, nbformat.read(tree / LESSON, as_version=4))


class Lesson:
    """The notebook on the screen: its cells, found by a word of their source."""

    def __init__(self, page: Page, notebook: NotebookNode) -> None:
        self._page, self._cells = page, notebook.cells
        self.all = page.locator(".jp-NotebookPanel .jp-Notebook .jp-Cell")
        expect(self.all).to_have_count(len(self._cells), timeout=MINUTE)
        self._wait_for_a_kernel()

    def cell(self, word: str) -> Locator:
        """The first cell of code that has this word."""
        places = (place for place, cell in enumerate(self._cells) if cell.cell_type == "code" and word in cell.source)
        return self.all.nth(next(places))

    def run(self, cell: Locator) -> list[dict]:
        """Run it as a learner does; what it looked like meanwhile, four times a second, and in the end."""
        cell.locator(".cm-content").click()
        self._page.keyboard.press("Control+Enter")
        prompt, looks, deadline = cell.locator(".jp-InputPrompt"), [], time.monotonic() + PATIENCE
        expect(prompt).to_have_text("[*]:")
        while prompt.inner_text() == "[*]:":
            assert time.monotonic() < deadline, f"not done after {PATIENCE} s; {self.dialogs}"
            looks.append(cell.evaluate(LOOK))
            self._page.wait_for_timeout(250)
        return [*looks, cell.evaluate(LOOK)]

    def _wait_for_a_kernel(self) -> None:
        """The page looks idle before it has a kernel: the server knows."""
        kernels, deadline = [], time.monotonic() + 120
        while not any(kernel["execution_state"] == "idle" and kernel["connections"] for kernel in kernels):
            assert time.monotonic() < deadline, f"no kernel after two minutes: {kernels}; {self.dialogs}"
            self._page.wait_for_timeout(250)
            kernels = self._page.request.get(urljoin(self._page.url, "/api/kernels")).json()

    @property
    def dialogs(self) -> list[str]:
        """Whatever lies over the lesson and waits for an answer."""
        return self._page.locator(".jp-Dialog, .Toastify__toast").all_inner_texts()

    @property
    def errors(self) -> list[str]:
        """Whatever is shown in red."""
        kinds = [f'[data-mime-type="application/vnd.jupyter.{kind}"]' for kind in ("error", "stderr")]
        return self._page.locator(", ".join(f".jp-OutputArea-output{kind}" for kind in kinds)).all_inner_texts()


def test_the_printed_address_opens_the_learners_first_lesson_without_a_question(server, page, lesson):
    assert f"/lab/tree/{LESSON}?token=" in server.url
    assert page.url.endswith(f"/lab/tree/{LESSON}")
    expect(page.locator(".jp-NotebookPanel:visible")).to_have_count(1)
    expect(page.locator(".jp-NotebookPanel:visible h1")).to_contain_text("Start here")
    page.wait_for_timeout(2000)  # time for a question to come up
    assert lesson.dialogs == []
    photograph(page, lesson.all.first, "00_first_sight")


def test_the_first_cells_run_and_the_live_figure_moves(page, lesson):
    lesson.run(lesson.cell("start_lab("))
    ruler = lesson.cell("lab.ruler(")
    looks = lesson.run(ruler)
    photograph(page, ruler, "00_ruler")
    assert lesson.errors == []
    pictures = [look for look in looks if look["pictures"]]
    assert len({picture for look in pictures for picture in look["pictures"]}) >= 3, "it did not change while it ran"
    assert max(len(look["pictures"]) for look in pictures) == 1, "pictures pile up"
    assert max(look["outputs"] for look in pictures) == 1, "outputs pile up"
    assert len({look["high"] for look in pictures}) == 1, "the page jumps"


def test_what_a_learner_writes_and_saves_changes_no_tracked_file(page, lesson, tree):
    lesson.cell("start_lab(").locator(".cm-content").click()
    page.keyboard.press("Control+End")
    page.keyboard.type("  # my own remark")
    page.keyboard.press("Control+s")
    assert eventually(lambda: "# my own remark" in (tree / LESSON).read_text(), 30), "it was not saved"
    assert lesson.dialogs == []
    assert git(tree, "status", "--porcelain") == ""


def test_when_jupyterlab_ends_nothing_of_the_lesson_is_left(server):
    server.command.find("jupyterlab").terminate()
    server.command.end()
    assert server.command.leftovers() == []


def photograph(page: Page, cell: Locator, name: str) -> None:
    """The whole window, with this cell in it."""
    SHOTS.mkdir(parents=True, exist_ok=True)
    cell.scroll_into_view_if_needed()
    page.screenshot(path=SHOTS / f"{name}.png")
