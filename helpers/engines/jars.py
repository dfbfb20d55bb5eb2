"""The Spark–Kafka connector and the broker's jars: pinned, verified, fetched once.

The Ivy inside pyspark resolves `jars.xml`; every file must match its sha256 in `jars.lock`
(`sha256sum -c` reads that file too). After the first time no network is needed.
Versions stand in `jars.xml` and nowhere else; `python -m helpers jars --lock` makes the lock file anew from it.
"""

import fcntl
import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

from helpers.engines import janitor
from helpers.engines.java import find_java
from helpers.errors import LabError
from helpers.settings import cache_dir

RECIPE = Path(__file__).with_name("jars.xml")
LOCK = Path(__file__).with_name("jars.lock")
KINDS = ("connector", "broker")


def connector_jars() -> list[Path]:
    """What Spark needs to talk to Kafka."""
    return _ready("connector")


def broker_jars() -> list[Path]:
    """What the embedded broker runs from."""
    return _ready("broker")


def version_of(name: str) -> str:
    """The version of a jar that the recipe names, for example `kafka_2.13`."""
    return _recipe()[name]


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


def relock(say=print) -> None:
    """Make the lock file anew from the recipe, and say what changed. Needs a network."""
    folder = jars_dir()
    folder.mkdir(parents=True, exist_ok=True)
    with _only_one(folder), _resolved(folder) as (scratch, failed):
        found = {
            f"{kind}/{path.name}": _sha256(path) for kind in KINDS for path in sorted(Path(scratch, kind).glob("*.jar"))
        }
        absent = [name for name, version in _recipe().items() if not any(f"/{name}-{version}." in jar for jar in found)]
        if failed or absent:
            raise LabError(
                f"The lock file was not changed: Ivy did not get {', '.join(absent) or 'everything'}. Is there a "
                f"network, and does Maven Central have these versions? What Ivy said is in {folder / 'fetch.log'}."
            )
    before = locked()
    LOCK.write_text("".join(f"{sha256}  {name}\n" for name, sha256 in found.items()))
    locked.cache_clear()
    for name in sorted({*before, *found}):
        if before.get(name) != found.get(name):
            how = "added" if name not in before else "removed" if name not in found else "has another sha256"
            say(f"jars.lock: {name} {how}")
    say(f"jars.lock: {len(found)} files, {'as before' if found == before else 'written'}")


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


@cache
def _recipe() -> dict[str, str]:
    """Name → version, of the jars that the recipe names."""
    return {one.attrib["name"]: one.attrib["rev"] for one in ElementTree.parse(RECIPE).iter("dependency")}


def _fetch(folder: Path) -> None:
    """Verify, then move: a broken download never becomes a cached jar."""
    with _resolved(folder) as (scratch, failed):
        absent = [name for name in locked() if not Path(scratch, name).is_file()]
        if failed or absent:
            raise LabError(
                f"Could not fetch the jars from Maven Central ({len(absent)} of {len(locked())} are missing). "
                "Is there a network? The first run needs one; later runs do not. Nothing was changed: run the "
                f"same command again once you are online. What Ivy said is in {folder / 'fetch.log'}."
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


@contextmanager
def _resolved(folder: Path) -> Iterator[tuple[str, bool]]:
    """Let Ivy resolve the recipe into a scratch folder: where that is, and whether Ivy failed."""
    java = find_java()
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=folder) as scratch:
        janitor.remove_at_exit(Path(scratch))
        command = [java.path, "-jar", str(_ivy()), "-cache", f"{scratch}/cache", "-ivy", str(RECIPE)]
        command += ["-confs", *KINDS, "-types", "jar", "bundle"]
        command += ["-retrieve", f"{scratch}/[conf]/[artifact]-[revision](-[classifier]).[ext]"]
        yield scratch, _run(command, folder / "fetch.log")


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
def _only_one(folder: Path) -> Iterator[None]:
    """Two notebooks started at once must not fetch into each other."""
    with (folder / ".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
