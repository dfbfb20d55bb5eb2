"""`make lab` and `make fresh`: the series in JupyterLab, on copies that a learner may change at will."""

import json
import os
import sys
from collections.abc import Callable
from datetime import datetime
from hashlib import sha256
from pathlib import Path

import zmq

from helpers.errors import LabError, first_line
from helpers.settings import NOTEBOOKS, ROOT, shown

MY_LESSONS = ROOT / "my_lessons"  # as deep as the originals, so that their links and imports hold
FIRST = "00_start_here.ipynb"
JUPYTERLAB = Path(__file__).parent / "jupyterlab"  # its overrides.json: no question about news, no look for updates


class Copies:
    """A learner's copies of the lessons. A record says which original each one was made from, so that a copy which
    nobody has touched can follow its original, and one that is in use never changes."""

    def __init__(self, originals: Path = NOTEBOOKS, folder: Path = MY_LESSONS) -> None:
        self._originals = {path.name: path for path in sorted(originals.glob("*.ipynb"))}
        self._folder, self._record = folder, folder / ".originals.json"

    def update(self) -> list[str]:
        """Copy what is new. What a learner changed stays; a sentence for each such lesson that is out of date."""
        record, outdated = self._read_record(), []
        for name, original in self._originals.items():
            copy, now, made_from = self._folder / name, _hash(original), record.get(name)
            if not copy.exists() or _hash(copy) in (now, made_from):
                record[name] = self._put(original, copy)
            elif made_from not in (now, None):
                outdated.append(
                    f"{name} has changed since you began it. Yours stays as it is; "
                    f"`make fresh LESSON={_number(name)}` gets the new one and keeps yours beside it."
                )
        self._write_record(record)
        return outdated

    def fresh(self, lesson: str) -> str:
        """Put an untouched copy there, and keep the learner's own beside it; a sentence that says so."""
        original, record = self._find(lesson), self._read_record()
        copy, said = self._folder / original.name, ""
        if copy.exists() and _hash(copy) not in (_hash(original), record.get(copy.name)):
            said = f" Your own version is beside it: {_rename(copy).name}."
            said += " Is the lesson open in JupyterLab? File, Reload Notebook from Disk."
        record[copy.name] = self._put(original, copy)
        self._write_record(record)
        return f"{shown(copy)} is fresh.{said}"

    def _find(self, lesson: str) -> Path:
        """By its number (3 or 03), its name, or the name of its file."""
        wanted = lesson.zfill(2) if lesson.isdigit() else Path(lesson).stem
        for name, path in self._originals.items():
            if wanted in (_number(name), path.stem):
                return path
        raise LabError(f"There is no lesson {lesson!r}. {self.choice}")

    @property
    def choice(self) -> str:
        """What can be asked for, in a sentence."""
        numbers = [_number(name) for name in self._originals]
        return f"Name one from {numbers[0]} to {numbers[-1]}, for example: make fresh LESSON={numbers[-1]}"

    def _put(self, original: Path, copy: Path) -> str:
        """Copy it with its recorded outputs, at once or not at all; its hash."""
        content = original.read_bytes()
        if not copy.exists() or copy.read_bytes() != content:
            self._folder.mkdir(exist_ok=True)
            _write(copy, content)
        return sha256(content).hexdigest()

    def _read_record(self) -> dict[str, str]:
        """Without a readable one, every copy that differs from its original counts as the learner's."""
        try:
            return dict(json.loads(self._record.read_text()))
        except (OSError, ValueError, TypeError):
            return {}

    def _write_record(self, record: dict[str, str]) -> None:
        if record != self._read_record():
            _write(self._record, json.dumps(record, indent=1).encode())


def lab(words: list[str], say: Callable[[str], object] = print) -> None:
    """Become JupyterLab: on loopback, with its token, with this environment's kernel and no other, without a question.
    The address that it prints leads to the learner's copy of the first lesson."""
    try:
        outdated = Copies().update()
    except OSError as problem:
        raise LabError(f"The lessons cannot be copied to {MY_LESSONS}: {first_line(problem)}.") from problem
    for sentence in outdated:
        say(sentence)
    os.environ["JUPYTER_PREFER_ENV_PATH"] = "1"
    settings = [
        "--ServerApp.ip=127.0.0.1",
        f"--ServerApp.root_dir={ROOT}",
        f"--LabApp.default_url=/lab/tree/{MY_LESSONS.name}/{FIRST}",
        f"--LabApp.app_settings_dir={JUPYTERLAB}",
        "--KernelSpecManager.allowed_kernelspecs=python3",
    ]
    if zmq.has("curve"):
        settings += ["--KernelManager.transport_encryption=auto"]  # without it every kernel warns on the terminal
    if os.geteuid() == 0:
        settings += ["--allow-root"]  # in a container one is root; loopback and the token protect it all the same
    os.chdir(ROOT)
    sys.stdout.flush()  # what was said would go with this program
    os.execv(sys.executable, [sys.executable, "-m", "jupyterlab", *settings, *words])


def fresh(lessons: list[str], say: Callable[[str], object] = print) -> None:
    """`python -m helpers fresh 03`."""
    copies = Copies()
    if not lessons:
        raise LabError(f"Which lesson? {copies.choice}")
    for lesson in lessons:
        say(copies.fresh(lesson))


def _number(name: str) -> str:
    return name.split("_")[0]


def _hash(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()


def _rename(path: Path) -> Path:
    """Put the date and time into its name; never onto another file."""
    dated = path.with_stem(f"{path.stem}_mine_{datetime.now():%Y-%m-%d_%H-%M-%S}")
    while dated.exists():
        dated = dated.with_stem(f"{dated.stem}_again")
    return path.rename(dated)


def _write(path: Path, content: bytes) -> None:
    """All of it or nothing, whenever we are stopped."""
    half = path.with_name(f".{path.name}.half")
    half.write_bytes(content)
    half.replace(path)
