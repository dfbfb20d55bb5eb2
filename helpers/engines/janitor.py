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

_process: subprocess.Popen | None = None
_lock = threading.Lock()
_groups: set[int] = set()


def kill_at_exit(pid: int) -> None:
    """End this process group when we end (start it with `start_new_session=True`)."""
    _groups.add(pid)
    _tell("+", "group", str(pid))


def forget(pid: int) -> None:
    """The process group was ended in good order."""
    _groups.discard(pid)
    _tell("-", "group", str(pid))


def remove_at_exit(folder: Path) -> None:
    _tell("+", "folder", str(folder))


def remove_containers_at_exit(label: str) -> None:
    """Remove every container with this label. Say so *before* the container is started."""
    _tell("+", "containers", label)


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
    global _process
    with _lock:
        if _process is None or _process.poll() is not None:
            _process = subprocess.Popen(
                [sys.executable, __file__],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C in the terminal must not reach it
            )
            atexit.register(_let_go, _process)
        _process.stdin.write(f"{sign}\t{kind}\t{what}\n".encode())
        _process.stdin.flush()


def _let_go(process: subprocess.Popen) -> None:
    """At a normal exit: let it sweep, and wait, so that a shell prompt means "all gone"."""
    process.stdin.close()
    deadline = time.monotonic() + 15
    while process.poll() is None and time.monotonic() < deadline:
        for pid in _groups:
            _reap(pid)  # else the janitor sees our dead children as zombies, and waits for them
        time.sleep(0.02)


def _remove_containers(label: str) -> None:
    import docker

    client = docker.from_env()
    for _ in range(4):  # a container may still be on its way when its owner dies
        for container in client.containers.list(all=True, filters={"label": label}):
            container.remove(force=True, v=True)
        time.sleep(0.5)


def _sweep(todo: dict[tuple[str, str], None]) -> None:
    groups = [int(what) for kind, what in todo if kind == "group"]
    threads = [threading.Thread(target=end_group, args=(pid,)) for pid in groups]
    threads += [
        threading.Thread(target=_remove_containers, args=(what,)) for kind, what in todo if kind == "containers"
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for kind, what in todo:
        if kind == "folder":
            shutil.rmtree(what, ignore_errors=True)


def _main() -> None:
    todo: dict[tuple[str, str], None] = {}
    for line in sys.stdin:
        sign, kind, what = line.rstrip("\n").split("\t")
        if sign == "+":
            todo[kind, what] = None
        else:
            todo.pop((kind, what), None)
    _sweep(todo)


if __name__ == "__main__":
    _main()
