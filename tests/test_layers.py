"""helpers is in layers: imports go downwards only, nothing goes in circles, and settings have one home."""

import ast
import json
import re
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from helpers.settings import NOTEBOOKS, ROOT

LAYERS = [  # from the ground up: a room may use what is below it
    {"errors", "settings"},
    {"engines"},
    {"ruler"},
    {"evidence"},
    {"faults", "figures"},
    {"lab", "lesson", "commands", "__main__"},
]
STRANGERS = {"faults", "figures"}  # rooms of one layer that do not know each other
MOST_LAYERS, MOST_LINES = 6, 350
FOR_NOTEBOOKS = re.compile(r"helpers\.(lab|lesson|figures(\..+)?|evidence\..+|faults\..+|ruler\.trace)")


def module_of(path: Path, root: Path = ROOT) -> str:
    """helpers/engines/kafka.py → helpers.engines.kafka"""
    words = path.relative_to(root).with_suffix("").parts
    return ".".join(words[:-1] if words[-1] == "__init__" else words)


SOURCES = {module_of(path): path.read_text() for path in sorted((ROOT / "helpers").rglob("*.py"))}


# ---- the checks: each takes sources by module name and returns what is wrong


def imports(source: str, known: set[str]) -> set[str]:
    """The modules of ours that a source imports, inside functions as well."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            assert not node.level, f"a relative import of {base}: name it in full"
            parts = {f"{base}.{alias.name}" for alias in node.names}
            found |= {part if part in known else base for part in parts}
    return {name for name in found if name == "helpers" or name.startswith("helpers.")}


def room_of(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def layer_of(module: str) -> int | None:
    """Its layer, counted from the ground; None if it is in no room that we know."""
    return next((number for number, rooms in enumerate(LAYERS) if room_of(module) in rooms), None)


def in_no_room(sources: dict[str, str]) -> list[str]:
    return [name for name in sources if name != "helpers" and layer_of(name) is None]


def upward_imports(sources: dict[str, str]) -> list[str]:
    faults = []
    for name, source in sources.items():
        for used in imports(source, set(sources)):
            here, there = layer_of(name), layer_of(used)
            strange = {room_of(name), room_of(used)} == STRANGERS
            if here is not None and there is not None and (there > here or strange):
                faults.append(f"{name} imports {used}")
    return faults


def circles(sources: dict[str, str]) -> list[str]:
    graph = {name: imports(source, set(sources)) - {name} for name, source in sources.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as found:
        return [" → ".join(found.args[1])]
    return []


def too_long(sources: dict[str, str]) -> list[str]:
    return [name for name, source in sources.items() if len(source.splitlines()) > MOST_LINES]


def settings_read_elsewhere(sources: dict[str, str]) -> list[str]:
    """Places outside settings.py that read a LAB_* variable, or one whose name is not written there."""
    faults = []
    for name, source in sources.items():
        for node in ast.walk(ast.parse(source)) if name != "helpers.settings" else ():
            asked = _asked_of_the_environment(node)
            others = isinstance(asked, ast.Constant) and not str(asked.value).startswith("LAB_")
            if asked is not None and not others:
                faults.append(f"{name}, line {asked.lineno}: {ast.unparse(node)}")
    return faults


def _asked_of_the_environment(node: ast.AST) -> ast.expr | None:
    """The name in os.environ[name], os.environ.get(name), os.getenv(name) and `name in os.environ`."""
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load) and _is_environment(node.value):
        return node.slice
    if isinstance(node, ast.Call) and node.args and isinstance(node.func, ast.Attribute):
        asks = node.func.attr == "getenv" or _is_environment(node.func.value)
        return node.args[0] if asks else None
    if isinstance(node, ast.Compare) and _is_environment(node.comparators[0]):
        return node.left
    return None


def _is_environment(node: ast.expr) -> bool:
    return ast.unparse(node) in ("os.environ", "environ")


def private_imports(notebook: dict) -> list[str]:
    """What a notebook imports of ours, beyond what is meant for notebooks."""
    known, used = set(SOURCES), set()
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            used |= imports("".join(cell["source"]), known)
    return sorted(name for name in used if not FOR_NOTEBOOKS.fullmatch(name))


# ---- helpers and the notebooks pass them


def test_every_module_is_in_a_room_and_there_are_few_layers():
    assert in_no_room(SOURCES) == []
    assert len(LAYERS) <= MOST_LAYERS


def test_imports_go_downwards_and_faults_and_figures_do_not_know_each_other():
    assert upward_imports(SOURCES) == []


def test_no_import_goes_in_a_circle():
    assert circles(SOURCES) == []


def test_no_module_is_too_long_to_be_one_idea():
    assert too_long(SOURCES) == []


def test_lab_variables_are_read_in_one_place_only():
    assert settings_read_elsewhere(SOURCES) == []


@pytest.mark.parametrize("path", sorted(NOTEBOOKS.glob("[0-9]*.ipynb")), ids=lambda path: path.stem)
def test_a_notebook_imports_only_what_is_meant_for_notebooks(path):
    assert private_imports(json.loads(path.read_text())) == []


# ---- and each check can fail


SMALL = {
    "helpers": "",
    "helpers.errors": "import re",
    "helpers.settings": "import os\nfrom helpers.errors import LabError\nos.environ.get('LAB_PACE')",
    "helpers.engines.kafka": "from helpers import errors, settings\nimport os\nos.environ['JAVA_HOME']",
    "helpers.engines.spark": "def f():\n    from helpers.engines import kafka",
    "helpers.figures": "from helpers.figures.live import LiveView",
    "helpers.figures.live": "import helpers.engines.spark",
    "helpers.faults.victim": "os.environ['LAB_PACE'] = 'quick'",
    "helpers.lab": "from helpers.figures import LiveView\nfrom helpers.faults import victim",
}


@pytest.mark.parametrize("check", [in_no_room, upward_imports, circles, too_long, settings_read_elsewhere])
def test_a_small_package_passes(check):
    assert check(SMALL) == []


@pytest.mark.parametrize(
    ("check", "module", "source"),
    [
        (in_no_room, "helpers.misc", ""),
        (upward_imports, "helpers.errors", "from helpers.settings import ROOT\nfrom helpers import lab"),
        (upward_imports, "helpers.engines.kafka", "def f():\n    from helpers.figures.live import LiveView"),
        (upward_imports, "helpers.faults.victim", "from helpers import figures"),
        (upward_imports, "helpers.figures.live", "import helpers.faults.victim"),
        (circles, "helpers.engines.kafka", "def f():\n    import helpers.engines.spark"),
        (circles, "helpers.figures.live", "from helpers.figures import LiveView"),
        (too_long, "helpers.lab", "a = 1\n" * (MOST_LINES + 1)),
        (settings_read_elsewhere, "helpers.lab", "os.environ.get('LAB_PACE')"),
        (settings_read_elsewhere, "helpers.lab", "os.environ['LAB_PACE']"),
        (settings_read_elsewhere, "helpers.lab", "os.getenv('LAB_PACE', 'quick')"),
        (settings_read_elsewhere, "helpers.lab", "'LAB_PACE' in os.environ"),
        (settings_read_elsewhere, "helpers.lab", "name = 'LAB_PACE'\nos.environ.get(name)"),
    ],
)
def test_a_fault_is_found(check, module, source):
    assert check(SMALL | {module: source}) != []


@pytest.mark.parametrize(
    "source", ["from helpers.engines.kafka import start_kafka", "import helpers.commands.queries", "import helpers"]
)
def test_an_import_that_is_not_for_notebooks_is_found(source):
    cells = [{"cell_type": "markdown", "source": ["import helpers.engines"]}, {"cell_type": "code", "source": [source]}]
    assert private_imports({"cells": cells[:1]}) == []
    assert len(private_imports({"cells": cells})) == 1
