"""What the stored notebooks promise: complete, clean, portable, and compared by an nbval that can fail."""

import copy
import io
import json
import os
import re
import shlex
import subprocess
import sys
import tokenize
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat import NotebookNode
from nbval.plugin import get_sanitize_patterns

from helpers.commands.report import COLUMNS
from helpers.ruler.statistics import ms
from helpers.settings import ROOT

NOTEBOOKS = sorted((ROOT / "notebooks").glob("[0-9]*.ipynb"))
FOLDER = ROOT / "notebooks"
SANITIZE = ROOT / "tests" / "nbval_sanitize.cfg"

KNOWN_TAGS = {"nbval-ignore-output", "raises-exception"}
MOST_BYTES, MOST_CELLS, MOST_LINES, WIDEST = 3_000_000, 40, 16, 95
NOT_IN_THE_CHECKOUT = {".venv", ".cache", "build", ".git"}

PLACES = r"work|root|home|Users|tmp|private|var|opt|mnt|media|srv|scratch|Volumes|workspace"
PATH = re.compile(rf"(?:(?<![\w.~/-])|file://)/(?:{PLACES})/[\w.~-]+|(?<!\w)[A-Z]:\\\\?\w+")
HOST = re.compile(r"https?://([^\s/:?#\"'<>)\]]+)")
PRIVATE = re.compile(  # addresses of an intranet, bare names, and what packages come from
    r"(10|192\.168|172\.(1[6-9]|2\d|3[01]))\.[\d.]+|[^.]+|.*\.(local|internal|lan|corp)"
    r"|.*(registry|mirror|proxy|nexus|artifactory).*"
)
LOOPBACK = {"127.0.0.1", "localhost"}


# ---- the checks: each takes a notebook and returns what is wrong with it


def code(notebook: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def tags(cell: NotebookNode) -> list[str]:
    return cell.metadata.get("tags", [])


def streams(cell: NotebookNode, name: str) -> str:
    return "".join(out.text for out in cell.outputs if out.output_type == "stream" and out.name == name)


def bundles(notebook: NotebookNode) -> Iterator[NotebookNode]:
    """Every rich output: a mapping of MIME type to data."""
    for cell in code(notebook):
        yield from (out.data for out in cell.outputs if "data" in out)


def texts(notebook: NotebookNode) -> Iterator[str]:
    """Everything that a reader could see, except pixels."""
    yield from (cell.source for cell in notebook.cells)
    for cell in code(notebook):
        for out in cell.outputs:
            yield out.get("text", "")
            yield from out.get("traceback", [])
            yield from (str(data) for kind, data in out.get("data", {}).items() if not kind.startswith("image/"))


def start(text: str) -> str:
    return repr(text.strip().splitlines()[0][:60]) if text.strip() else "an empty cell"


def has_verdicts_that_are_compared(notebook: NotebookNode) -> list[str]:
    verdicts = [cell for cell in code(notebook) if re.search(r"\bverdict\(", cell.source)]
    faults = [] if verdicts else ["there is no verdict"]
    for cell in verdicts:
        if tags(cell):
            faults.append(f"the verdict {start(cell.source)} carries {tags(cell)}: nothing compares it")
        if cell.execution_count is None:
            faults.append(f"the verdict {start(cell.source)} has no execution count: nbval would not compare it")
        if not re.search(r"^✓ ", streams(cell, "stdout"), re.MULTILINE):
            faults.append(f"the verdict {start(cell.source)} has no stored ✓")
        if re.search(r"^✗ ", streams(cell, "stdout"), re.MULTILINE):
            faults.append(f"the verdict {start(cell.source)} is stored with a ✗")
    return faults


def ticks_have_their_numbers(notebook: NotebookNode) -> list[str]:
    """A tick alone teaches little. (An exercise's "✓ Right." or a prediction that came true is no verdict.)"""
    lines = [
        line for cell in code(notebook) if "verdict(" in cell.source for line in streams(cell, "stdout").splitlines()
    ]
    ticks = [line for line in lines if line.startswith("✓ ") and "predicted" not in line]
    return [f"no number beside {start(line)}" for line in ticks if not line.endswith(")") or "(measured: " not in line]


def was_run_in_order(notebook: NotebookNode) -> list[str]:
    counts = [cell.execution_count for cell in code(notebook)]
    whole = list(range(1, len(counts) + 1))
    return [] if counts and counts == whole else [f"execution counts are {counts}: not one run from top to bottom"]


def has_no_errors(notebook: NotebookNode) -> list[str]:
    """A cell that is meant to raise says so with its tag, and then must have raised."""
    faults = []
    for cell in code(notebook):
        raised, meant = any(out.output_type == "error" for out in cell.outputs), "raises-exception" in tags(cell)
        if raised and not meant:
            faults.append(f"{start(cell.source)} is stored with an error")
        if meant and not raised:
            faults.append(f"{start(cell.source)} is tagged raises-exception and did not raise")
    return faults


def has_no_widgets(notebook: NotebookNode) -> list[str]:
    faults = ["widget state is stored"] if "widgets" in notebook.metadata else []
    kinds = [kind for data in bundles(notebook) for kind in data if "jupyter.widget" in kind]
    return faults + [f"a widget is shown: {kind}" for kind in kinds]


def names_no_machine(notebook: NotebookNode) -> list[str]:
    faults = []
    for text in texts(notebook):
        faults += [f"a path of some machine: {found[0]}…" for found in PATH.finditer(text)]
        hosts = {host.lower() for host in HOST.findall(text)} - LOOPBACK
        faults += [f"an address of some network: {host}" for host in hosts if PRIVATE.fullmatch(host)]
    return faults


def is_small(notebook: NotebookNode) -> list[str]:
    size = len(nbformat.writes(notebook).encode())
    return [f"{size:,} bytes: more than {MOST_BYTES:,}"] if size > MOST_BYTES else []


def statements(source: str) -> int:
    """Logical lines: a fluent query over ten lines is one."""
    return sum(token.type == tokenize.NEWLINE for token in tokenize.generate_tokens(io.StringIO(source).readline))


def is_short(notebook: NotebookNode) -> list[str]:
    lengths = {cell.source: len(cell.source.splitlines()) for cell in code(notebook)}
    faults = [f"{start(source)} has {lines} lines" for source, lines in lengths.items() if lines > MOST_LINES]
    wide = [line for source in lengths for line in source.splitlines() if len(line) > WIDEST]
    faults += [f"{len(line)} characters are too wide for a projector: {start(line)}" for line in wide]
    if len(notebook.cells) > MOST_CELLS:
        faults.append(f"{len(notebook.cells)} cells: more than {MOST_CELLS}")
    if median(map(statements, lengths)) > 5:
        faults.append("most code cells have more than 5 statements")
    return faults


def links(notebook: NotebookNode) -> Iterator[str]:
    """Targets of links and images in the prose, without those in code."""
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            prose = re.sub(r"```.*?```|`[^`\n]*`", "", cell.source, flags=re.DOTALL)
            yield from re.findall(r"\]\(\s*<?([^)\s>]+)", prose)
            yield from re.findall(r"(?:href|src)=[\"']([^\"']+)", prose)


def links_resolve(notebook: NotebookNode, folder: Path = FOLDER) -> list[str]:
    faults = []
    for target in links(notebook):
        path = target.split("#")[0]
        if re.match(r"https?://|mailto:", target) or not path:
            continue
        place = (folder / path).resolve()
        if not place.is_relative_to(ROOT) or not place.exists():
            faults.append(f"the link to {target} leads nowhere")
        elif place.relative_to(ROOT).parts[0] in NOT_IN_THE_CHECKOUT:
            faults.append(f"the link to {target} leads to what a fresh clone does not have")
    return faults


def starts_and_stops_the_lab(notebook: NotebookNode) -> list[str]:
    first, last = code(notebook)[0].source, code(notebook)[-1].source
    faults = [] if re.search(r"^lab = start_lab\(", first, re.MULTILINE) else ["the first code cell starts no lab"]
    return faults + ([] if last.strip() == "lab.stop()" else ["the last code cell does not stop the lab"])


def tags_are_known(notebook: NotebookNode) -> list[str]:
    """A typo in a tag would do nothing; a marker in a comment would be seen by learners."""
    faults = [f"unknown tag {tag!r}" for cell in notebook.cells for tag in tags(cell) if tag not in KNOWN_TAGS]
    return faults + [f"a comment marker in {start(cell.source)}" for cell in code(notebook) if "NBVAL_" in cell.source]


def kernel_is_plain(notebook: NotebookNode) -> list[str]:
    name = notebook.metadata.get("kernelspec", {}).get("name")
    return [] if name == "python3" else [f"the kernel is {name!r}, not 'python3'"]


def says_nothing_on_stderr(notebook: NotebookNode) -> list[str]:
    wrote = {start(cell.source): streams(cell, "stderr") for cell in code(notebook)}
    return [f"{cell} wrote to stderr: {start(text)}" for cell, text in wrote.items() if text]


def pictures_have_constant_words(notebook: NotebookNode) -> list[str]:
    """nbval does not compare pictures, but it compares the words beside them."""
    pictures = [data for data in bundles(notebook) if any(kind.startswith("image/") for kind in data)]
    words = [data.get("text/plain", "") for data in pictures]
    return [f"a picture with the words {one!r}" for one in words if not re.fullmatch(r"<figure: [^<>]+>", one)]


def is_valid(notebook: NotebookNode) -> list[str]:
    try:
        nbformat.validate(notebook)
    except nbformat.ValidationError as problem:
        return [str(problem)]
    return []


CHECKS = [
    has_verdicts_that_are_compared,
    ticks_have_their_numbers,
    was_run_in_order,
    has_no_errors,
    has_no_widgets,
    names_no_machine,
    is_small,
    is_short,
    links_resolve,
    starts_and_stops_the_lab,
    tags_are_known,
    kernel_is_plain,
    says_nothing_on_stderr,
    pictures_have_constant_words,
    is_valid,
]


# ---- the notebooks pass them


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_every_notebook(path: Path, check: Callable):
    assert check(nbformat.read(path, as_version=4)) == []


def test_there_are_lessons_numbered_from_0():
    assert [path.name[:2] for path in NOTEBOOKS] == [f"{number:02}" for number in range(len(NOTEBOOKS))]
    assert len(NOTEBOOKS) >= 2


@pytest.mark.parametrize("path", NOTEBOOKS[1:], ids=lambda path: path.stem)
def test_every_lesson_is_on_the_map_and_in_the_readme(path: Path):
    start_here = nbformat.read(NOTEBOOKS[0], as_version=4)
    assert path.name in list(links(start_here))
    assert f"notebooks/{path.name}" in (ROOT / "README.md").read_text()


def test_the_readme_is_finished_and_its_links_resolve():
    readme = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell((ROOT / "README.md").read_text())])
    assert links_resolve(readme, ROOT) == []
    assert names_no_machine(readme) == []
    assert re.findall(r"@@\w+@@|TODO|FIXME", readme.cells[0].source) == []


# ---- and each check can fail


VERDICT = 'verdict(claim("it holds", True, 2))'
PICTURE = {"image/png": "iVBORw0KGgo=", "text/plain": "<figure: a curve>"}


def said(text: str, name: str = "stdout") -> NotebookNode:
    return nbformat.v4.new_output("stream", name=name, text=text)


def shown(**data: str) -> NotebookNode:
    return nbformat.v4.new_output("display_data", data={kind.replace("_", "/"): what for kind, what in data.items()})


@pytest.fixture
def lesson() -> NotebookNode:
    """A small notebook with which nothing is wrong."""
    picture = nbformat.v4.new_output("display_data", data=dict(PICTURE))
    cells = [
        nbformat.v4.new_markdown_cell("# See it\n[start](00_start_here.ipynb), [site](https://spark.apache.org/docs)"),
        nbformat.v4.new_code_cell("lab = start_lab(slots=4)", outputs=[said("Ready: a Kafka broker.\n")]),
        nbformat.v4.new_code_cell("lab.about()", outputs=[said("Kafka at 127.0.0.1:4711\n")]),
        nbformat.v4.new_code_cell("figures.show(curve)", outputs=[picture]),
        nbformat.v4.new_code_cell(VERDICT, outputs=[said("✓ it holds (measured: 2)\n")]),
        nbformat.v4.new_code_cell("lab.stop()", outputs=[said("Stopped: Spark and Kafka.\n")]),
    ]
    notebook = nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": {"name": "python3", "display_name": "P"}})
    for number, cell in enumerate(code(notebook), 1):
        cell.execution_count = number
    cells[2].metadata["tags"] = ["nbval-ignore-output"]
    return notebook


ERROR = nbformat.v4.new_output("error", ename="LabError", evalue="no", traceback=["LabError: no"])


def put(where: str, value: object) -> Callable[[NotebookNode], None]:
    """A mutation: `put("cells.4.execution_count", None)`."""
    *path, last = [int(step) if step.isdigit() else step for step in where.split(".")]

    def mutate(notebook: NotebookNode) -> None:
        target = notebook
        for step in path:
            target = target[step]
        target[last] = value

    return mutate


def say(*texts: str) -> Callable[[NotebookNode], None]:
    """A mutation: the picture's cell prints this instead."""
    return put("cells.3.outputs", [said(text) for text in texts])


def show(**data: str) -> Callable[[NotebookNode], None]:
    """A mutation: the picture's cell shows this instead."""
    return put("cells.3.outputs", [shown(**data)])


def write(text: str) -> Callable[[NotebookNode], None]:
    """A mutation: this is the prose."""
    return put("cells.0.source", text)


def in_every_code_cell(**changes: object) -> Callable[[NotebookNode], object]:
    return lambda notebook: [cell.update(changes) for cell in code(notebook)]


MUTATIONS = {
    has_verdicts_that_are_compared: {
        "a tag": put("cells.4.metadata.tags", ["nbval-ignore-output"]),
        "no count": put("cells.4.execution_count", None),
        "no output": put("cells.4.outputs", []),
        "a claim that failed": put("cells.4.outputs", [said("✓ a\n✗ b\n")]),
        "none at all": put("cells.4.source", "print('✓ it holds')"),
    },
    ticks_have_their_numbers: {"a bare tick": put("cells.4.outputs", [said("✓ a (measured: 3)\n✓ it holds\n")])},
    was_run_in_order: {
        "a cell that was not run": put("cells.3.execution_count", None),
        "a cell that was run again": put("cells.3.execution_count", 9),
        "stripped": in_every_code_cell(execution_count=None),
    },
    has_no_errors: {
        "an error": put("cells.3.outputs", [ERROR]),
        "no error where one is meant": put("cells.3.metadata.tags", ["raises-exception"]),
    },
    has_no_widgets: {
        "widget state": put("metadata.widgets", {}),
        "a widget": show(**{"application_vnd.jupyter.widget-view+json": "{}"}),
    },
    names_no_machine: {
        "a home": say("Java at /home/ada/jdk/bin/java\n"),
        "a Mac": write("Look into `/Users/ada/lab`."),
        "a folder of a run": show(text_html="<p>/tmp/lab-x1y2/spark.log</p>"),
        "a file's address": say("file:///root/lab/x"),
        "Windows": say("C:\\Users\\ada"),
        "a registry": say("from https://registry.example.com/simple"),
        "an intranet": say("from http://10.1.2.3:8081/maven"),
        "a bare host": write("see http://nexus:8081/maven"),
    },
    is_small: {"a huge picture": show(image_png="A" * 3_000_001, text_plain="<figure: a>")},
    is_short: {
        "a long cell": put("cells.3.source", "a = 1\n" * 17),
        "a wide line": put("cells.3.source", "a = " + "1" * 92),
        "many cells": lambda notebook: notebook.cells.extend([nbformat.v4.new_markdown_cell("more")] * 40),
        "cells mostly long": in_every_code_cell(source="a = 1\n" * 6),
    },
    links_resolve: {
        "no such lesson": write("next: [99](99_no_such_lesson.ipynb)"),
        "no such picture": write('<img src="missing.png">'),
        "outside the checkout": write("[up](../../)"),
        "not in a clone": write("[cache](../.venv)"),
    },
    starts_and_stops_the_lab: {
        "no start": put("cells.1.source", "import helpers"),
        "no stop": put("cells.5.source", "print('bye')"),
    },
    tags_are_known: {
        "a typo": put("cells.2.metadata.tags", ["nbval-ignore-outputs"]),
        "a comment": put("cells.2.source", "# NBVAL_IGNORE_OUTPUT\nlab.about()"),
    },
    kernel_is_plain: {
        "somebody's own": put("metadata.kernelspec.name", "my-venv"),
        "none": put("metadata.kernelspec", {}),
    },
    says_nothing_on_stderr: {"a warning": put("cells.3.outputs", [said("WARN Utils: …\n", "stderr")])},
    pictures_have_constant_words: {
        "matplotlib's own": show(image_png="A", text_plain="<Figure size 640x480 with 1 Axes>"),
        "no words": show(image_png="A"),
    },
    is_valid: {"a cell of no kind": put("cells.0.cell_type", "heading")},
}


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_a_good_notebook_passes(lesson, check):
    assert check(lesson) == []


@pytest.mark.parametrize(
    ("check", "mutate"),
    [
        pytest.param(check, mutate, id=f"{check.__name__}: {what}")
        for check, mutations in MUTATIONS.items()
        for what, mutate in mutations.items()
    ],
)
def test_a_fault_is_found(lesson, check, mutate):
    mutate(lesson)
    assert check(lesson) != []


def test_every_check_is_seen_to_fail():
    assert set(MUTATIONS) == set(CHECKS)


def test_a_local_address_and_a_public_site_are_nobodys_secret(lesson):
    lesson.cells[
        0
    ].source = "http://127.0.0.1:4040, https://github.com/apache/spark/tree/master/home/x, ~/lab, ../tmp/x"
    assert names_no_machine(lesson) == []


# ---- what is replaced before comparing


def sanitized(text: str) -> str:
    for regex, replacement in get_sanitize_patterns(SANITIZE.read_text()):
        text = re.sub(regex, replacement, text)
    return text


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Kafka: embedded at 127.0.0.1:40123", "Kafka: embedded at 127.0.0.1:51999"),
        ("UI at http://localhost:4040", "UI at http://localhost:4041"),
        ("log: /tmp/lab-a1b2c3/spark-01/spark.log", "log: /var/folders/xy/T/lab-zz9/spark-01/spark.log"),
        ("Measured 2026-11-16", "Measured 2027-01-02"),
        ("at 2026-11-16T03:31:49+00:00.", "at 2027-01-02T13:01:09.123Z."),
        ("✓ it is 10 times lower (measured: 87×, p50 2.1)", "✓ it is 10 times lower (measured: 12×, p50 3)"),
    ],
)
def test_ports_paths_dates_and_the_number_beside_a_tick_may_differ(one, other):
    assert sanitized(one) == sanitized(other) != one


@pytest.mark.parametrize(
    "text",
    [
        "✓ neither lost nor repeated an event: 0 of 120,000",
        "✓ 48 slots: 8 + 20 + 20",
        "p50 250 and 2 ms, p95 457 and 6 ms, ratio 110:1",
        "Measured: c) more than 10 times lower.",
        "✗ it is 10 times lower (seen twice)",
        "<figure: live latency>",
        "batch 12, 2,000 rows, at 00:31",
        "notebooks/00_start_here.ipynb and ../data/published.json",
    ],
)
def test_nothing_else_is_replaced(text):
    assert sanitized(text) == text


def test_what_the_lessons_store_is_compared_as_it_is():
    """Nothing but the number beside a tick needs replacing today: the less is replaced, the more is compared."""
    for path in NOTEBOOKS:
        for cell in code(nbformat.read(path, as_version=4)):
            if not tags(cell):
                said = re.sub(
                    r"^([✓✗].*)\(measured: [^)]*\)$", r"\1(measured)", streams(cell, "stdout"), flags=re.MULTILINE
                )
                assert sanitized(streams(cell, "stdout")) == said


# ---- nbval, run as `make test` runs it, passes what is right and fails what is wrong


def nbval_options() -> list[str]:
    """What `make test` gives to pytest for the notebooks, without the notebooks themselves."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    plan = subprocess.run(["make", "-n", "test"], cwd=ROOT, env=env, capture_output=True, text=True, check=True).stdout
    lines = plan.replace("\\\n", "").splitlines()
    line = next((line for line in lines if "--nbval" in line), None)
    assert line, "`make test` does not run nbval"
    words = shlex.split(line)
    words = words[words.index("pytest") + 1 :]
    assert words[-1].rstrip("/") == "notebooks", "the last word names what to run"
    return words[:-1]


def test_nbval_is_strict_and_replaces_what_is_tested_here():
    options = nbval_options()
    assert "--nbval" in options and "--nbval-lax" not in options
    assert options[options.index("--nbval-sanitize-with") + 1] == "tests/nbval_sanitize.cfg"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory) -> NotebookNode:
    """A tiny lesson, recorded as the real ones are: a verdict, a quiz, and a picture that changes in place."""
    folder = tmp_path_factory.mktemp("recorded")
    sources = [
        'import sys; sys.path.insert(0, "..")\nfrom helpers.lesson import claim, quiz, verdict',
        'verdict(claim("one is less than two", 1 < 2), claim("nothing was lost", True))',
        'quiz("00")',
        "from IPython.display import display\n"
        'frame = {"image/png": "AAAA", "text/plain": "<figure: live latency>"}\n'
        "live = display(frame, raw=True, display_id=True)\n"
        'for png in ("BBBB", "CCCC"): live.update(frame | {"image/png": png}, raw=True)',
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3"}
    return NotebookClient(notebook, timeout=120, resources={"metadata": {"path": in_checkout(folder)}}).execute()


def in_checkout(folder: Path) -> Path:
    """A notebooks folder beside a helpers package, as in the checkout."""
    (folder / "helpers").symlink_to(ROOT / "helpers")
    (folder / "notebooks").mkdir()
    return folder / "notebooks"


@pytest.fixture
def nbval(tmp_path):
    """Store a notebook and run nbval on it: (exit code, what it said)."""
    notebooks = in_checkout(tmp_path)

    def run(notebook: NotebookNode) -> tuple[int, str]:
        nbformat.write(notebook, notebooks / "lesson.ipynb")
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-c",
            "pyproject.toml",
            f"--rootdir={tmp_path}",
            "-p",
            "no:cacheprovider",
        ]
        done = subprocess.run([*command, *nbval_options(), str(notebooks)], cwd=ROOT, capture_output=True, text=True)
        return done.returncode, done.stdout

    return run


CORRUPTIONS = {
    "a verdict": put("cells.1.outputs", [said("✓ one is less than two\n✓ nothing was found\n")]),
    "a mark": put("cells.1.outputs", [said("✓ one is less than two\n✗ nothing was lost\n")]),
    "a verdict that is not there": put("cells.1.outputs", []),
    "a quiz": put("cells.2.outputs.0.data.text/html", "<b>another</b>"),
    "a picture's words": put("cells.3.outputs.0.data.text/plain", "<figure: something else>"),
    "code whose claim no longer holds": put("cells.1.source", 'verdict(claim("one is less than two", 2 < 1))'),
}


@pytest.mark.engine
def test_nbval_passes_what_was_recorded(recorded, nbval):
    exit_code, report = nbval(recorded)
    assert exit_code == 0, report
    assert "4 passed" in report


@pytest.mark.engine
@pytest.mark.parametrize("corrupt", CORRUPTIONS.values(), ids=list(CORRUPTIONS))
def test_nbval_fails_what_was_corrupted(recorded, nbval, corrupt):
    notebook = copy.deepcopy(recorded)
    corrupt(notebook)
    exit_code, report = nbval(notebook)
    assert exit_code == 1, report
    assert "1 failed" in report


@pytest.mark.engine
def test_a_stripped_notebook_passes_nbval_but_not_the_checks(recorded, nbval):
    stripped = copy.deepcopy(recorded)
    for cell in code(stripped):
        cell.execution_count, cell.outputs = None, []
    exit_code, _ = nbval(stripped)
    assert exit_code == 0, "if nbval sees this by now, the check below has become its second"
    assert was_run_in_order(stripped) and has_verdicts_that_are_compared(stripped)


@pytest.mark.engine
def test_copies_that_jupyterlab_keeps_are_not_run(recorded, tmp_path, nbval):
    kept = tmp_path / "notebooks" / ".ipynb_checkpoints" / "lesson-checkpoint.ipynb"
    kept.parent.mkdir()
    old = copy.deepcopy(recorded)
    old.cells[1].outputs = []
    nbformat.write(old, kept)
    exit_code, report = nbval(recorded)
    assert exit_code == 0, report


def test_readmes_table_is_the_recorded_bench():
    recorded = json.loads((ROOT / "data" / "recorded_bench.json").read_text())
    measured = {run["name"]: [ms(run["ms"][column]) for column in COLUMNS] for run in recorded["runs"]}
    rows = re.findall(r"^\| \**([^|*]+?)\** \|((?: [\d.,]+ \|){5})$", (ROOT / "README.md").read_text(), re.M)
    shown = {name: cells.strip(" |").split(" | ") for name, cells in rows}
    assert {"micro-batch, as installed", "micro-batch, at its best", "real-time"} <= set(shown)
    assert shown == {name: measured[name] for name in shown}
