"""The Spark–Kafka connector and the broker's jars: pinned, verified, fetched once.

The Ivy inside pyspark resolves `jars.xml`; every file must match its sha256 in `jars.lock`
(`sha256sum -c` reads that file too). After the first time no network is needed.
"""

import fcntl
import hashlib
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from helpers.engines import janitor
from helpers.engines.java import find_java
from helpers.errors import LabError
from helpers.paths import cache_dir

RECIPE = Path(__file__).with_name("jars.xml")
LOCK = Path(__file__).with_name("jars.lock")


def connector_jars() -> list[Path]:
    """What Spark needs to talk to Kafka."""
    return _ready("connector")


def broker_jars() -> list[Path]:
    """What the embedded broker runs from."""
    return _ready("broker")


def ensure(say=print) -> None:
    """Fetch what is missing or damaged; say what happens."""
    if not faults():
        return
    folder = jars_dir()
    folder.mkdir(parents=True, exist_ok=True)
    with _only_one(folder):
        bad = faults()  # another notebook may have fetched them while we waited
        if bad:
            damaged = [name for name, what in bad.items() if what == "damaged"]
            for name in damaged:
                say(f"jars: {name} is damaged (its sha256 is not the one in jars.lock); fetching it again")
            say(f"jars: fetching {len(bad)} of {len(locked())} files, about a minute the first time")
            _fetch(folder)


def faults() -> dict[str, str]:
    """File name → "missing" or "damaged", for each jar that is not as the lock file says."""
    found = {}
    for name, sha256 in locked().items():
        path = jars_dir() / name
        if not path.is_file():
            found[name] = "missing"
        elif _sha256(path) != sha256:
            found[name] = "damaged"
    return found


def jars_dir() -> Path:
    return cache_dir() / "jars"


@cache
def locked() -> dict[str, str]:
    """File name → sha256, as pinned."""
    lines = LOCK.read_text().splitlines()
    return {name: sha256 for sha256, name in (line.split() for line in lines)}


@cache
def _ready(kind: str) -> list[Path]:
    ensure()
    return [jars_dir() / name for name in locked() if name.startswith(f"{kind}/")]


def _fetch(folder: Path) -> None:
    """Resolve into a scratch folder, verify, then move: a broken download never becomes a cached jar."""
    java = find_java()
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=folder) as scratch:
        janitor.remove_at_exit(Path(scratch))
        command = [java.path, "-jar", str(_ivy()), "-cache", f"{scratch}/cache", "-ivy", str(RECIPE)]
        command += ["-confs", "connector", "broker", "-types", "jar", "bundle"]
        command += ["-retrieve", f"{scratch}/[conf]/[artifact]-[revision](-[classifier]).[ext]"]
        log = folder / "fetch.log"
        failed = _run(command, log)
        absent = [name for name in locked() if not Path(scratch, name).is_file()]
        if failed or absent:
            raise LabError(
                f"Could not fetch the jars from Maven Central ({len(absent)} of {len(locked())} are missing). "
                "Is there a network? The first run needs one; later runs do not. Nothing was changed: run the "
                f"same command again once you are online. What Ivy said is in {log}."
            )
        wrong = [name for name, sha in locked().items() if _sha256(Path(scratch, name)) != sha]
        if wrong:
            raise LabError(
                f"{', '.join(wrong)}: what was downloaded does not match its sha256 in jars.lock, so it was "
                "thrown away. A proxy may have altered it: try again, on another network if it happens twice."
            )
        for name in locked():
            (folder / name).parent.mkdir(exist_ok=True)
            shutil.move(Path(scratch, name), folder / name)


def _run(command: list[str], log: Path) -> bool:
    """Run it with its output in a file; True if it failed. It ends if we are ended."""
    with log.open("wb") as file:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT, start_new_session=True
        )
        janitor.kill_at_exit(process.pid)
        try:
            return process.wait() != 0
        finally:
            janitor.end_group(process.pid)
            janitor.forget(process.pid)


def _ivy() -> Path:
    import pyspark

    return next(Path(pyspark.__file__).parent.glob("jars/ivy-*.jar"))


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def _only_one(folder: Path):
    """Two notebooks started at once must not fetch into each other."""
    with (folder / ".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
