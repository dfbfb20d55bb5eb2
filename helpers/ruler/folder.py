"""What a run left in its checkpoint folder, noted before the folder is removed."""

import re
from contextlib import suppress
from pathlib import Path

LOGS = re.compile(r"(offsets|commits)/(\d+)")
STATE = re.compile(r"(state)/\d+/\d+/(?:[^/]+/)?(\d+)(?:_[\w-]+)?\.(?:changelog|zip|delta|snapshot)")


def files_of(folder: str | Path) -> list[dict]:
    """The log and state files of a checkpoint folder: `kind`, `batch`, `file`, `bytes`, and `at`, when it appeared.

    That is the time of its last change of name (ctime): Spark writes a file under another name and renames it.
    """
    found = []
    for path in sorted(Path(folder).rglob("*")):
        name = path.relative_to(folder).as_posix()
        match = LOGS.fullmatch(name) or STATE.fullmatch(name)
        if match:
            batch = int(match[2]) - (match[1] == "state")  # a batch leaves the state's next version
            with suppress(FileNotFoundError):  # Spark removes old files while the query runs
                stat = path.stat()
                file = {"kind": match[1], "batch": batch, "file": name, "bytes": stat.st_size, "at": stat.st_ctime}
                found.append(file)
    return found
