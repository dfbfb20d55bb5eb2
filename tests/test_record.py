"""`python -m helpers record`: what a notebook shows is stored, but only if all of it ran."""

from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from helpers.__main__ import main
from helpers.commands.record import record
from helpers.errors import LabError


def notebook(path: Path, *cells: str) -> Path:
    """A notebook as an editor left it: never run, with traces of another run."""
    code = [new_code_cell(source, metadata={"execution": {"shell.execute_reply": "2026"}}) for source in cells]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3"}, "widgets": {}}
    nbformat.write(new_notebook(cells=[new_markdown_cell("# A lesson"), *code], metadata=kernel), path)
    return path


def test_a_notebook_is_run_from_top_to_bottom_in_its_own_folder_and_what_it_shows_is_stored(tmp_path, capsys):
    (tmp_path / "beside.txt").write_text("from beside")
    path = notebook(tmp_path / "lesson.ipynb", "text = open('beside.txt').read()", "print(text)", "text.upper()")
    assert main(["record", str(path)]) == 0
    stored = nbformat.read(path, as_version=4)
    nbformat.validate(stored)
    code = stored.cells[1:]
    assert [cell.execution_count for cell in code] == [1, 2, 3]
    assert code[1].outputs[0].text == "from beside\n"
    assert code[2].outputs[0].data["text/plain"] == "'FROM BESIDE'"
    assert not any("execution" in cell.metadata for cell in code), "when it ran is different every time"
    assert "widgets" not in stored.metadata
    assert capsys.readouterr().out.startswith("lesson.ipynb: run in ")


def test_one_that_fails_gets_a_sentence_and_its_file_stays_as_it_was(tmp_path):
    path = notebook(tmp_path / "lesson.ipynb", "print('so far so good')", "1 / 0")
    before = path.read_bytes()
    with pytest.raises(LabError, match=r"lesson\.ipynb stopped, its file is unchanged\.[\s\S]*ZeroDivisionError"):
        record([str(path)])
    assert path.read_bytes() == before


def test_one_that_is_not_there_gets_a_sentence(tmp_path, capsys):
    assert main(["record", str(tmp_path / "none.ipynb")]) == 1
    said = capsys.readouterr().err
    assert "Sorry: There is no notebook" in said and "none.ipynb" in said and "Traceback" not in said
