"""Nothing is left behind, however a process ends. Real processes, no stand-ins."""

import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress

import pytest

from helpers.engines import janitor
from helpers.engines.scratch import remove
from helpers.settings import ROOT

PATIENCE = 5  # seconds after which everything must be gone

KILL_THE_JANITOR = "janitor._process.kill(); janitor._process.wait()"

# Starts a sleeper in a group of its own, tells the janitor about it and about a folder, then does as told.
OWNER = """
import pathlib, subprocess, sys, time
from helpers.engines import janitor
pipe, folder = int(sys.argv[1]), pathlib.Path(sys.argv[2])
sleeper = subprocess.Popen(["sleep", "60"], stdout=subprocess.DEVNULL, start_new_session=True, pass_fds=[pipe])
janitor.kill_at_exit(sleeper.pid)
janitor.remove_at_exit(folder)
{then}
print(sleeper.pid, flush=True)
sys.stdin.readline()
"""


class Lab:
    """A process that owns a sleeper and a folder, and how to see whether they are still there."""

    def __init__(self, folder, then: str = "") -> None:
        self.folder = folder
        (folder / "data").mkdir(parents=True)
        (folder / "data" / "segment.log").write_text("records")
        self._ours, theirs = os.pipe()
        self.owner = subprocess.Popen(
            [sys.executable, "-c", OWNER.format(then=then), str(theirs), str(folder)],
            cwd=ROOT,
            pass_fds=[theirs],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            process_group=0,
        )
        os.close(theirs)
        self.sleeper = int(self.owner.stdout.readline())

    def sleeper_gone(self, within: float = 0) -> bool:
        """The sleeper holds the last writing end of our pipe: when it is dead, and only then, the pipe ends."""
        return bool(select.select([self._ours], [], [], within)[0])

    def folder_gone(self, within: float = 0) -> bool:
        deadline = time.monotonic() + within
        while self.folder.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        return not self.folder.exists()

    def close(self) -> None:
        if not self.sleeper_gone():
            with suppress(ProcessLookupError):
                os.killpg(self.sleeper, signal.SIGKILL)
        self.owner.kill()
        self.owner.communicate()
        os.close(self._ours)


@pytest.fixture
def start(tmp_path):
    labs: list[Lab] = []

    def start_lab(then: str = "") -> Lab:
        labs.append(Lab(tmp_path / "scratch", then))
        return labs[-1]

    yield start_lab
    for lab in labs:
        lab.close()


def test_while_its_owner_lives_nothing_is_touched(start):
    lab = start()
    assert not lab.sleeper_gone(within=0.5)
    assert not lab.folder_gone()


def test_after_kill_9_the_process_and_the_folder_are_gone(start):
    lab = start()
    lab.owner.kill()
    died = time.monotonic()
    assert lab.sleeper_gone(within=PATIENCE)
    assert lab.folder_gone(within=PATIENCE - (time.monotonic() - died))


def test_a_normal_exit_returns_only_when_all_is_gone(start):
    lab = start()
    lab.owner.communicate("go\n", timeout=PATIENCE)
    assert lab.owner.returncode == 0
    assert lab.sleeper_gone()
    assert lab.folder_gone()


def test_an_error_in_the_owner_cleans_up_as_well(start):
    lab = start(then="print(sleeper.pid, flush=True); 1 / 0")
    lab.owner.wait(PATIENCE)
    assert lab.owner.returncode == 1
    assert lab.sleeper_gone()
    assert lab.folder_gone()


def test_what_was_forgotten_is_left_alone(start):
    lab = start(then="janitor.forget(sleeper.pid)")
    lab.owner.kill()
    assert lab.folder_gone(within=PATIENCE)  # folders go last: the janitor is done with its list
    assert not lab.sleeper_gone(within=0.3)


def test_ctrl_c_in_the_terminal_still_cleans_up(start):
    lab = start()
    os.killpg(lab.owner.pid, signal.SIGINT)  # a terminal sends it to the whole foreground group
    lab.owner.wait(PATIENCE)
    assert lab.owner.returncode == -signal.SIGINT
    assert lab.sleeper_gone()
    assert lab.folder_gone()


def test_a_new_janitor_is_told_all_that_the_dead_one_knew(start, tmp_path):
    (tmp_path / "later").mkdir()
    lab = start(then=f"{KILL_THE_JANITOR}; janitor.remove_at_exit(folder.parent / 'later')")
    lab.owner.kill()
    assert lab.sleeper_gone(within=PATIENCE)
    assert lab.folder_gone(within=PATIENCE)


def test_what_was_forgotten_is_unknown_to_a_new_janitor(start):
    lab = start(then=f"janitor.forget(sleeper.pid); {KILL_THE_JANITOR}; janitor.forget(1)")
    lab.owner.kill()
    assert lab.folder_gone(within=PATIENCE)
    assert not lab.sleeper_gone(within=0.3)


def test_a_normal_exit_cleans_up_even_if_the_janitor_died_unnoticed(start):
    lab = start(then=KILL_THE_JANITOR)
    lab.owner.communicate("go\n", timeout=PATIENCE)
    assert lab.owner.returncode == 0
    assert lab.sleeper_gone()
    assert lab.folder_gone()


def test_no_file_beside_the_janitor_is_taken_for_a_library(tmp_path):
    """`kafka.py` lies there today: a `docker.py` or a `shutil.py` must not become what the janitor imports."""
    package, doomed = tmp_path / "engines", tmp_path / "doomed"
    package.mkdir()
    doomed.mkdir()
    shutil.copy(janitor.__file__, package)
    (package / "shutil.py").write_text("raise SystemExit('this is not the real one')")
    code = (
        "import importlib.util as u, pathlib, shutil, sys\n"
        "spec = u.spec_from_file_location('janitor', sys.argv[1]); janitor = u.module_from_spec(spec)\n"
        "spec.loader.exec_module(janitor); janitor.remove_at_exit(pathlib.Path(sys.argv[2]))"
    )
    subprocess.run([sys.executable, "-c", code, str(package / "janitor.py"), str(doomed)], cwd=ROOT, timeout=PATIENCE)
    assert not doomed.exists()


@pytest.mark.parametrize("removed", [True, False], ids=["removed in good order", "left behind"])
def test_docker_is_asked_only_for_a_container_that_was_left_behind(removed, monkeypatch):
    """Else every exit after a container would wait for one that is long gone."""
    asked = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as docker:

        def answer() -> None:
            while True:
                try:
                    caller, _ = docker.accept()
                except OSError:
                    return
                asked.set()
                caller.close()

        threading.Thread(target=answer, daemon=True).start()
        monkeypatch.setenv("DOCKER_HOST", f"tcp://127.0.0.1:{docker.getsockname()[1]}")
        forget = "janitor.forget_container('lab.kafka=1')" if removed else ""
        code = f"from helpers.engines import janitor; janitor.remove_container_at_exit('lab.kafka=1'); {forget}"
        subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)
        docker.shutdown(socket.SHUT_RDWR)
    assert asked.is_set() is not removed


def test_a_group_that_ignores_a_polite_end_is_killed():
    stubborn = subprocess.Popen(
        ["sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.1; done"],
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    stubborn.stdout.readline()
    janitor.end_group(stubborn.pid, grace=0.3)
    assert stubborn.wait(PATIENCE) == -signal.SIGKILL
    stubborn.stdout.close()


def test_a_whole_group_is_ended_not_only_its_leader():
    ours, theirs = os.pipe()
    leader = subprocess.Popen(["sh", "-c", "sleep 60 & sleep 60"], pass_fds=[theirs], start_new_session=True)
    os.close(theirs)
    try:
        janitor.end_group(leader.pid)
        assert select.select([ours], [], [], PATIENCE)[0]
    finally:
        os.close(ours)
        leader.wait(PATIENCE)


def test_ending_a_group_that_is_gone_is_no_error():
    done = subprocess.Popen(["true"], start_new_session=True)
    done.wait()
    janitor.end_group(done.pid)


def test_a_folder_that_is_written_to_while_it_is_removed_goes_all_the_same(tmp_path):
    """As a query does that was stopped a moment ago."""
    folder, over = tmp_path / "checkpoint", time.monotonic() + 0.5

    def write():
        while time.monotonic() < over:
            folder.mkdir(exist_ok=True)
            with suppress(OSError):
                (folder / f"{time.monotonic_ns()}").touch()

    writer = threading.Thread(target=write)
    writer.start()
    remove(folder)
    writer.join()
    assert not folder.exists()
