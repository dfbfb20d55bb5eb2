"""Every exercise has its answer, every folded solution is right, and every lesson ends with its quiz."""

import ast
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from helpers import lesson
from helpers.settings import NOTEBOOKS

SOLUTION = re.compile(r"<details>\s*<summary>Solution.*?</details>", re.DOTALL)
PYTHON = re.compile(r"^( *)```python\n(.*?)^ *```", re.DOTALL | re.MULTILINE)


# ---- what a notebook asks and what it solves


def calls(notebook: NotebookNode, function: str) -> Iterator[ast.Call]:
    """The calls of a function in the notebook's code."""
    for cell in notebook.cells:
        if cell.cell_type == "code":
            for node in ast.walk(ast.parse(re.sub(r"^%.*", "", cell.source, flags=re.MULTILINE))):
                if isinstance(node, ast.Call) and ast.unparse(node.func) == function:
                    yield node


def text(node: ast.expr) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def exercises(notebook: NotebookNode) -> dict[str, str]:
    """The name of every exercise → the expression whose value is its answer."""
    return {text(call.args[0]): ast.unparse(call.args[1]) for call in calls(notebook, "check") if len(call.args) == 2}


def solutions(notebook: NotebookNode) -> list[str]:
    """The Python in the folded solutions."""
    prose = [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]
    folded = [found for source in prose for found in SOLUTION.findall(source)]
    return [textwrap.dedent(code) for one in folded for _, code in PYTHON.findall(one)]


def faults(notebook: NotebookNode, number: str, capsys: pytest.CaptureFixture) -> list[str]:
    """What is wrong with the exercises, solutions and quiz of lesson `number`."""
    asked = exercises(notebook)
    known = {f"{number}.{name}" for name in lesson.answers(number).get("exercises", {})}
    found = [f"{name} is asked, but nobody knows the answer" for name in asked.keys() - known]
    found += [f"{name} has an answer, but is never asked" for name in known - asked.keys()]
    if [text(call.args[0]) if call.args else "" for call in calls(notebook, "quiz")] != [number]:
        found.append(f'it does not call quiz("{number}") once')
    solved: dict = {}
    for code in solutions(notebook):
        try:
            exec(code, solved)
        except Exception as problem:
            found.append(f"a solution does not run by itself: {problem!r}")
    for name in asked.keys() & known:
        try:
            answer = eval(asked[name], solved)
        except NameError as problem:
            found.append(f"no solution answers {name}: {problem}")
            continue
        capsys.readouterr()
        lesson.check(name, answer)
        said = capsys.readouterr().out
        if said != "✓ Right.\n":
            found.append(f"the solution of {name} is {answer!r}, and the check says: {said.strip()}")
    return found


@pytest.mark.parametrize("path", sorted(NOTEBOOKS.glob("[0-9]*.ipynb")), ids=lambda path: path.stem)
def test_every_exercise_is_solved_by_its_own_solution_and_there_is_a_quiz(path: Path, capsys):
    assert faults(nbformat.read(path, as_version=4), path.name[:2], capsys) == []


# ---- and each of that can fail


SOLVED = """\
<details><summary>Solution</summary>

8 + 20:

```python
slots = 8 + 20
word = "addBatch"
```
</details>
"""


@pytest.fixture
def small(monkeypatch) -> NotebookNode:
    """A lesson with two exercises, solved, and a quiz."""
    known = {"slots": {"answer": 28, "hints": ["add"]}, "phase": {"answer": "addBatch", "hints": ["look"]}}
    monkeypatch.setattr(lesson, "answers", lambda _: {"exercises": known, "quiz": []})
    monkeypatch.setattr(lesson, "_tries", {})
    cells = [
        new_code_cell('slots, word = None, None\n\ncheck("99.slots", slots)\ncheck("99.phase", word)'),
        new_markdown_cell(SOLVED),
        new_code_cell('quiz("99")'),
    ]
    return new_notebook(cells=cells)


def test_a_solved_lesson_has_no_fault(small, capsys):
    assert faults(small, "99", capsys) == []


@pytest.mark.parametrize(
    ("cell", "before", "after", "fault"),
    [
        (0, "99.slots", "99.slot", "99.slot is asked, but nobody knows the answer"),
        (0, 'check("99.phase", word)', "", "99.phase has an answer, but is never asked"),
        (0, "99.slots", "98.slots", "98.slots is asked"),
        (1, "8 + 20\nword", "8 + 21\nword", "the solution of 99.slots is 29, and the check says: ✗ Not yet"),
        (1, "word = ", "words = ", "no solution answers 99.phase"),
        (1, 'word = "addBatch"', "word = None", "the check says: ○ Not answered yet"),
        (1, "slots = 8 + 20", "slots = lab.slots", "a solution does not run by itself"),
        (1, "Solution", "Hint", "no solution answers 99.slots"),
        (1, "```python", "```", "no solution answers 99.slots"),
        (2, 'quiz("99")', "", 'it does not call quiz("99") once'),
        (2, 'quiz("99")', 'quiz("98")', 'it does not call quiz("99") once'),
    ],
)
def test_a_fault_is_found(small, capsys, cell, before, after, fault):
    source = small.cells[cell].source
    assert before in source
    small.cells[cell].source = source.replace(before, after)
    assert any(fault in one for one in faults(small, "99", capsys))
