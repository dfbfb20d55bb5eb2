"""`python -m helpers record`: run the notebooks from top to bottom and store what they show."""

import time
from pathlib import Path

import nbformat
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

from helpers.errors import LabError
from helpers.settings import NOTEBOOKS


def record(names: list[str], say=print) -> None:
    """Each notebook in a fresh kernel; its file changes only if every cell ran."""
    for path in [Path(name) for name in names] or sorted(NOTEBOOKS.glob("[0-9]*.ipynb")):
        if not path.is_file():
            raise LabError(f"There is no notebook {path}.")
        began = time.monotonic()
        notebook = nbformat.read(path, as_version=4)
        for cell in notebook.cells:
            cell.metadata.pop("execution", None)
        client = NotebookClient(
            notebook,
            km=AsyncKernelManager(kernel_name="python3", transport_encryption="auto"),  # else the kernel warns
            timeout=900,
            resources={"metadata": {"path": path.parent}},
            record_timing=False,
        )
        try:
            client.execute()
        except CellExecutionError as problem:
            raise LabError(f"{path.name} stopped, its file is unchanged. {problem}") from problem
        notebook.metadata.pop("widgets", None)
        nbformat.write(notebook, path)
        say(f"{path.name}: run in {time.monotonic() - began:.0f} s")
