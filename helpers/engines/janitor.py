"""Nothing is left behind, even after `kill -9`.

A tiny second process holds the reading end of a pipe. While this process lives it only takes notes
of what was started. When this process ends, however it ends, the pipe closes and the janitor ends
the processes, removes the containers and deletes the folders that are still on its list.
"""

import atexit
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

GRACE_SECONDS = 3.0

Todo = dict[tuple[str, str], None]  # (kind, what), in the order in which they came

_process: subprocess.Popen | None = None
_lock = threading.Lock()
_todo: Todo = {}  # what the janitor has been told: a new one is told it again


def kill_at_exit(pid: int) -> None:
    """End this process group when we end (start it with `start_new_session=True`)."""
    _tell("+", "group", str(pid))


def forget(pid: int) -> None:
    """The process group was ended in good order."""
    _tell("-", "group", str(pid))


def remove_at_exit(folder: Path) -> None:
    _tell("+", "folder", str(folder))


def remove_container_at_exit(label: str) -> None:
    """Remove the container with this label. Say so *before* the container is started."""
    _tell("+", "container", label)


def forget_container(label: str) -> None:
    """The container was removed in good order."""
    _tell("-", "container", label)


def end_group(pid: int, grace: float = GRACE_SECONDS) -> None:
    """SIGTERM, a moment to react, SIGKILL: for a whole process group."""
    deadline = time.monotonic() + grace
    try:
        os.killpg(pid, signal.SIGTERM)
        while time.monotonic() < deadline:
            _reap(pid)
            os.killpg(pid, 0)
            time.sleep(0.05)
        os.killpg(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass  # it is gone (macOS says "not permitted" of a group that has only zombies)


def _reap(pid: int) -> None:
    with contextlib.suppress(ChildProcessError):  # in the janitor's process it is nobody's child
        os.waitpid(pid, os.WNOHANG)


def _tell(sign: str, kind: str, what: str) -> None:
    with _lock:
        _note(_todo, sign, kind, what)
        if _process is None:
            atexit.register(_let_go)
        if not (_process and _written(_process, [(sign, kind, what)])):
            _start()


def _start() -> None:
    """A janitor that knows the whole list: the one before, if there was one, took its notes to the grave."""
    global _process
    _process = subprocess.Popen(
        [sys.executable, "-P", __file__],  # -P: this folder must not be where it looks for `docker`
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        bufsize=0,  # nothing stays unwritten if it dies
        start_new_session=True,  # Ctrl-C in the terminal must not reach it
    )
    _written(_process, [("+", kind, what) for kind, what in _todo])


def _written(process: subprocess.Popen, lines: list[tuple[str, str, str]]) -> bool:
    """Did the janitor get these lines? Not if it is dead."""
    if process.stdin is None or process.stdin.closed or process.poll() is not None:
        return False
    try:
        process.stdin.write("".join("\t".join(line) + "\n" for line in lines).encode())
    except BrokenPipeError:
        return False
    return True


def _let_go() -> None:
    """At a normal exit: let it sweep, and wait, so that a shell prompt means "all gone"."""
    with _lock:
        if _todo and not (_process and _written(_process, [])):
            _start()
        groups = [int(what) for kind, what in _todo if kind == "group"]
        _todo.clear()
    if _process is None or _process.stdin is None:
        return
    _process.stdin.close()
    deadline = time.monotonic() + 15
    while _process.poll() is None and time.monotonic() < deadline:
        for pid in groups:
            _reap(pid)  # else the janitor sees our dead children as zombies, and waits for them
        time.sleep(0.02)


def _note(todo: Todo, sign: str, kind: str, what: str) -> None:
    if sign == "+":
        todo[kind, what] = None
    else:
        todo.pop((kind, what), None)


def _remove_container(label: str) -> None:
    import docker

    client = docker.from_env()
    for _ in range(4):  # it may still be on its way when its owner dies
        found = client.containers.list(all=True, filters={"label": label})
        for container in found:
            container.remove(force=True, v=True)
        if found:
            break
        time.sleep(0.5)


def _sweep(todo: Todo) -> None:
    threads = [threading.Thread(target=end_group, args=(int(what),)) for kind, what in todo if kind == "group"]
    threads += [threading.Thread(target=_remove_container, args=(what,)) for kind, what in todo if kind == "container"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for kind, what in todo:
        if kind == "folder":
            shutil.rmtree(what, ignore_errors=True)


def _main() -> None:
    todo: Todo = {}
    for line in sys.stdin:
        _note(todo, *line.rstrip("\n").split("\t"))
    _sweep(todo)


if __name__ == "__main__":
    _main()
