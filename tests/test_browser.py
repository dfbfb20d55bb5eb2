"""A learner's first minutes: JupyterLab as `make lab` starts it, in a real browser."""

import json
import re
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urljoin

import nbformat
import pytest
from conftest import chromium
from nbformat import NotebookNode
from playwright.sync_api import Locator, Page, expect, sync_playwright
from test_commands import Command, LabServer, lab_settings

from helpers.paths import BUILD, ROOT, cache_dir

pytestmark = [pytest.mark.engine, pytest.mark.browser]

LESSON = "notebooks/00_start_here.ipynb"
SHOTS = BUILD / "shots"  # for whoever wants to look
MINUTE = 60_000  # milliseconds, as Playwright counts
PATIENCE = 10 * 60  # seconds for the whole lesson, on a slow and busy machine
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
SETTINGS = {
    "notebook-extension/tracker": {"windowingMode": "none"},  # cells outside the window are there, too
    "apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
}
# What a cell shows now: how many outputs, which pictures, and how high it is.
LOOK = """cell => {
    const outputs = [...cell.querySelectorAll('.jp-OutputArea-child')];
    const pictures = [...cell.querySelectorAll('.jp-OutputArea-output img')].map(img => img.src);
    return {outputs: outputs.length, pictures, high: cell.querySelector('.jp-OutputArea')?.offsetHeight ?? 0};
}"""


@pytest.fixture(scope="module")
def tree(tmp_path_factory) -> Path:
    """A copy of the checkout, because JupyterLab saves what it runs; the lesson in it has no outputs yet."""
    copy = tmp_path_factory.mktemp("browser") / "checkout"
    copy.mkdir()
    for name in ("helpers", "notebooks", "data"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints"))
    shutil.copy(ROOT / "requirements.txt", copy)
    lesson = nbformat.read(copy / LESSON, as_version=4)
    for cell in lesson.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    nbformat.write(lesson, copy / LESSON)
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
        yield LabServer(command, Path(places["JUPYTER_RUNTIME_DIR"]))
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


class Lesson:
    """The notebook on the screen: its cells, found by a word of their source."""

    def __init__(self, page: Page, notebook: NotebookNode) -> None:
        self._page, self._cells = page, notebook.cells
        self.all = page.locator(".jp-NotebookPanel .jp-Notebook .jp-Cell")

    def cells(self, word: str) -> list[Locator]:
        return [self.all.nth(place) for place, cell in enumerate(self._cells) if self._has(cell, word)]

    @staticmethod
    def _has(cell: NotebookNode, word: str) -> bool:
        return cell.cell_type == "code" and word in cell.source

    def run_all(self) -> None:
        expect(self.all).to_have_count(len(self._cells), timeout=MINUTE)
        self._wait_for_a_kernel()
        self._page.locator(".lm-MenuBar-itemLabel").get_by_text("Run", exact=True).click()
        self._page.locator(".lm-Menu-itemLabel").get_by_text("Run All Cells", exact=True).click()
        running = self.all.locator(".jp-InputPrompt").filter(has_text=re.compile(r"\[(\*|\d+)\]"))
        running.first.wait_for(timeout=MINUTE)

    def _wait_for_a_kernel(self) -> None:
        """The page looks idle before it has a kernel, and Run All would then ask which one: the server knows."""
        kernels, deadline = [], time.monotonic() + 120
        while not any(kernel["execution_state"] == "idle" and kernel["connections"] for kernel in kernels):
            assert time.monotonic() < deadline, f"no kernel after two minutes: {kernels}; {self.state}"
            self._page.wait_for_timeout(250)
            kernels = self._page.request.get(urljoin(self._page.url, "/api/kernels")).json()

    @property
    def state(self) -> str:
        """What is on the screen, for whoever must find out why nothing moves."""
        prompts = " ".join(self.all.locator(".jp-InputPrompt").all_inner_texts())
        return f"prompts: {prompts}; dialogs: {self._page.locator('.jp-Dialog').all_inner_texts()}"

    @property
    def errors(self) -> list[str]:
        """Whatever is shown in red."""
        kinds = [f'[data-mime-type="application/vnd.jupyter.{kind}"]' for kind in ("error", "stderr")]
        return self._page.locator(", ".join(f".jp-OutputArea-output{kind}" for kind in kinds)).all_inner_texts()


def shown(cell: Locator) -> str:
    """The text of a cell's outputs."""
    return "\n".join(cell.locator(".jp-OutputArea-output").all_inner_texts())


def test_the_first_lesson_runs_and_its_live_figure_moves(server, page, tree):
    lesson = Lesson(page, nbformat.read(tree / LESSON, as_version=4))
    lesson.run_all()

    (race,), last = lesson.cells("lab.race("), lesson.cells("lab.stop()")[-1]
    looks, deadline, milestones = [], time.monotonic() + PATIENCE, [20, 50]
    while "Stopped: Spark and Kafka." not in shown(last):
        assert lesson.errors == []
        assert time.monotonic() < deadline, f"not done after {PATIENCE} s; {lesson.state}"
        looks.append(race.evaluate(LOOK))
        if milestones and len(frames(looks)) >= milestones[0]:
            photograph(page, race, f"00_race_frame_{milestones.pop(0)}")
        page.wait_for_timeout(250)
    looks.append(race.evaluate(LOOK))
    photograph(page, race, "00_race_done")

    assert len(frames(looks)) >= 3, "the live figure did not change while its cell ran"
    assert max(len(look["pictures"]) for look in looks) == 1, "pictures pile up"
    assert max(look["outputs"] for look in looks) == 1, "outputs pile up"
    assert len({look["high"] for look in looks if look["pictures"]}) == 1, "the page jumps"
    assert lesson.errors == []

    verdicts = [shown(cell) for cell in lesson.cells("verdict(\n")]
    assert len(verdicts) >= 2
    for lines in verdicts:
        assert lines.startswith("✓ ") and "✗" not in lines
    photograph(page, lesson.cells("verdict(\n")[1], "00_verdict")
    figures = lesson.cells("figures.show(")
    assert figures and all(cell.locator("img").count() == 1 for cell in figures)
    photograph(page, figures[-1], "00_compare")


def test_when_jupyterlab_ends_nothing_of_the_lesson_is_left(server):
    server.command.find("jupyterlab").terminate()
    server.command.end()
    assert server.command.leftovers() == []


def frames(looks: list[dict]) -> set[str]:
    return {picture for look in looks for picture in look["pictures"]}


def photograph(page: Page, cell: Locator, name: str) -> None:
    """The whole window, with this cell in it."""
    SHOTS.mkdir(parents=True, exist_ok=True)
    cell.scroll_into_view_if_needed()
    page.screenshot(path=SHOTS / f"{name}.png")
