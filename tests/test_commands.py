"""The commands as a user runs them: they work, they leave nothing behind, and a bad input gets a sentence."""

import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import psutil
import pytest
from conftest import BACKENDS

from helpers.__main__ import main
from helpers.settings import BUILD, ROOT

pytestmark = [pytest.mark.engine, pytest.mark.commands]

KNEE = ("events_per_second", "recovery_seconds")
SHORT = "--seconds 1 --warmup 0 --rounds 1 --rate 300"
LONG = "--seconds 300 --warmup 2 --rounds 1"  # to be stopped in the middle
NOTHING_LEFT_WITHIN = 10  # seconds
PATIENCE = 420  # seconds for one command, on a slow and busy machine

# What runs during a race, by a word of its command line.
BROKER, SPARK, PROBE, JANITOR = "kafka.Kafka", "SparkSubmit", "helpers.ruler.probe_process", "janitor.py"


class Command:
    """A command as a terminal runs it: in a process group of its own, with a temporary folder of its own."""

    def __init__(self, words: list[str], folder: Path, cwd: Path = ROOT, **env: str | None) -> None:
        folder.mkdir(parents=True)
        self.temp, self._output = folder / "tmp", folder / "output"
        self.temp.mkdir()
        self.family: dict[int, psutil.Process] = {}
        self._names: dict[int, str] = {}
        with self._output.open("wb") as output:
            self._process = subprocess.Popen(
                words,
                cwd=cwd,
                env=environment(TMPDIR=str(self.temp), **env),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a background job ignores it
            )
        self._root = psutil.Process(self._process.pid)
        self._over = threading.Event()
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self._watcher.start()

    @property
    def said(self) -> str:
        return self._output.read_text(errors="replace")

    def _watch(self) -> None:
        """Remember every process that it starts, and what each is."""
        while not self._over.wait(0.4):
            self._look()

    def _look(self) -> None:
        with suppress(psutil.NoSuchProcess):
            for one in [self._root, *self._root.children(recursive=True)]:
                with suppress(psutil.NoSuchProcess):
                    self._names[one.pid] = " ".join(one.cmdline()) or self._names.get(one.pid, "")
                    self.family.setdefault(one.pid, one)

    def find(self, word: str) -> psutil.Process | None:
        """A process of its family that runs now and has this word in its command line."""
        family = [one for pid, one in list(self.family.items()) if word in self._names.get(pid, "")]
        return next((one for one in family if alive(one)), None)

    def wait_until(self, what: Callable[[], object], why: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while not what():
            assert self._process.poll() is None, f"it ended before {why}:\n{self.said}"
            assert time.monotonic() < deadline, f"{PATIENCE} s passed before {why}:\n{self.said}"
            time.sleep(0.05)

    def wait_for(self, *words: str) -> None:
        """Until all of these run."""
        for word in words:
            self.wait_until(lambda word=word: self.find(word), f"{word} ran")

    def wait_for_line(self, text: str) -> None:
        self.wait_until(lambda: text in self.said, f"it said {text!r}")

    def interrupt(self) -> None:
        """Ctrl-C: a terminal sends it to the whole foreground group."""
        self._look()
        os.killpg(self._process.pid, signal.SIGINT)

    def kill_python(self) -> None:
        """kill -9 of the Python process that does the work."""
        self._look()
        race = self.find("-m helpers race")
        assert race is not None
        race.kill()

    def end(self) -> int:
        """Its exit code, once it has ended."""
        code = self._process.wait(PATIENCE)
        self._over.set()
        self._watcher.join()
        return code

    def leftovers(self, within: float = NOTHING_LEFT_WITHIN) -> list[str]:
        """Processes, containers and folders of it that are still there after so many seconds."""
        deadline = time.monotonic() + within
        while (left := self._left()) and time.monotonic() < deadline:
            time.sleep(0.1)
        return left

    def _left(self) -> list[str]:
        processes = [self._names[pid] for pid, one in self.family.items() if alive(one)]
        folders = [str(path) for path in self.temp.glob("lab-*")]
        port = re.search(r"Kafka: testcontainers at 127\.0\.0\.1:(\d+)", self.said)
        return processes + folders + (containers_at(int(port[1])) if port else [])

    def kill(self) -> None:
        """Whatever became of it, nothing of it outlives the test."""
        self._over.set()
        for one in self.family.values():
            with suppress(psutil.NoSuchProcess):
                one.kill()
        self._process.wait()


def environment(**changes: str | None) -> dict[str, str]:
    """Ours, without what belongs to this very test run; None removes a variable."""
    kept = ("LAB_CACHE", "LAB_KAFKA_IMAGE")
    foreign = re.compile(r"LAB_|MAKE|MFLAGS|PYTEST_|JUPYTER|TMPDIR|COLUMNS")
    env = {name: value for name, value in os.environ.items() if name in kept or not foreign.match(name)}
    env |= {name: value for name, value in changes.items() if value is not None}
    return {name: value for name, value in env.items() if name not in changes or changes[name] is not None}


def alive(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


def containers_at(port: int) -> list[str]:
    """Kafka containers of ours that publish this port."""
    import docker

    found = docker.from_env().containers.list(all=True, filters={"label": "lab.kafka", "publish": str(port)})
    return [f"container {one.name}" for one in found]


@pytest.fixture(scope="module")
def real_results_are_kept():
    """What a developer measured is moved aside, and put back afterwards."""
    aside = BUILD / ".before-the-tests"
    names = ("race.json", "race.png", "bench.json")
    if not aside.exists():  # else a test run was killed: what it moved aside is the real thing
        aside.mkdir(parents=True)
        for name in names:
            if (BUILD / name).exists():
                shutil.move(BUILD / name, aside / name)
    yield
    if aside.exists():  # else another test run at the same time has put it back already
        for name in names:
            (BUILD / name).unlink(missing_ok=True)
        for path in aside.iterdir():
            shutil.move(path, BUILD / path.name)
        aside.rmdir()


@pytest.fixture
def run(tmp_path, real_results_are_kept):
    """Start a command; it is given as one text, or as words."""
    commands: list[Command] = []

    def start(words: str | list[str], **env: str | None) -> Command:
        words = words.split() if isinstance(words, str) else words
        commands.append(Command(words, tmp_path / f"command-{len(commands)}", **env))
        return commands[-1]

    yield start
    for command in commands:
        command.kill()


def make(target: str, args: str = "") -> list[str]:
    return ["make", target, *([f"ARGS={args}"] if args else [])]


def helpers(words: str) -> list[str]:
    return [sys.executable, "-m", "helpers", *words.split()]


def strictly(path: Path) -> dict:
    """JSON as everybody reads it: NaN and Infinity are not in it."""
    return json.loads(path.read_text(), parse_constant=lambda name: pytest.fail(f"{path.name} contains {name}"))


def assert_it_can_be_repeated(one: dict) -> None:
    """A run says what it ran on, with what, and everything that it measured."""
    assert datetime.fromisoformat(one["date"]).tzinfo is not None
    assert one["machine"] and one["python"] and one["java"]
    assert {"pyspark", "confluent-kafka"} <= set(one["versions"])
    assert one["load"]["rate"] > 0 and one["load"]["seconds"] > 0
    assert len(one["latency_ms"]) > 100
    assert one["ms"]["p50"] <= one["ms"]["p99"] <= one["ms"]["max"]


# ---- make race


def assert_it_told_and_kept_everything(race: Command) -> None:
    """A table on the screen; figures, runs and a picture in build/."""
    assert race.end() == 0, race.said
    assert "Kafka: embedded at 127.0.0.1:" in race.said
    assert re.search(r"Real-Time Mode is [\d,]+ times faster at p50", race.said)
    assert "Against micro-batch as installed: " in race.said
    for row in ("micro-batch, as installed", "micro-batch, at its best", "real-time ", "article: micro-batch "):
        assert re.search(rf"^ *{row}.*\d", race.said, re.MULTILINE), f"no row {row!r} in the table:\n{race.said}"
    kept = strictly(BUILD / "race.json")
    families = ("best.stateless", "installed.stateless")
    claimed = {f"{family}.{which}.microbatch_over_realtime" for family in families for which in ("p50", "p99")}
    assert claimed <= set(kept["figures"])
    assert {"lost", "duplicated"} <= set(kept["figures"])
    assert all(isinstance(value, int | float) and math.isfinite(value) for value in kept["figures"].values())
    assert kept["figures"]["lost"] == 0
    assert [one["backend"] for one in kept["runs"]] == ["embedded"] * 3
    for one in kept["runs"]:
        assert_it_can_be_repeated(one)
    assert (BUILD / "race.png").read_bytes().startswith(b"\x89PNG\r\n")
    assert race.leftovers(within=0) == [], "a prompt means: all gone"


def test_make_race_works_without_docker_even_twice_at_once(run):
    both = [run(make("race", SHORT), LAB_KAFKA="embedded") for _ in range(2)]
    for race in both:
        assert_it_told_and_kept_everything(race)


# ---- make bench


def test_make_bench_gives_every_figure_that_the_series_claims(run):
    bench = run(make("bench", SHORT), LAB_KAFKA="embedded")
    assert bench.end() == 0, bench.said
    kept = strictly(BUILD / "bench.json")
    families = ("best.stateless", "best.groupby", "same_state.groupby", "slow_store.stateless")
    forms = [f"{family}.{{}}.microbatch_over_realtime" for family in families]
    forms += [f"ladder.{step}.{{}}.over_realtime" for step in ("installed", "fetch", "linger", "nofork", "async")]
    claimed = {form.format(which) for form in forms for which in ("p50", "p99")}
    claimed |= {"ruler.p99.kafka_python_over_confluent", "ruler.producer_core_share"}
    claimed |= {"startup.kafka_seconds", "startup.spark_seconds", "lost", "duplicated"}
    claimed |= {"liveview.p50.on_over_off", "liveview.p99.on_over_off"}
    claimed |= {f"knee.{mode}_{what}" for mode in ("microbatch", "realtime") for what in KNEE}
    assert claimed <= set(kept["figures"])
    for name, value in kept["figures"].items():
        assert isinstance(value, int | float) and math.isfinite(value), f"{name} is {value}"
        assert value > 0 or name in ("lost", "duplicated"), f"{name} is {value}"
        assert name in bench.said, f"{name} is in the file but not on the screen"
    assert kept["figures"]["lost"] == 0
    assert kept["figures"]["ruler.producer_core_share"] < 1
    for one in kept["runs"]:
        assert_it_can_be_repeated(one)
    assert "WARNING" not in bench.said, "no library, no kernel has anything to complain about"
    assert bench.leftovers(within=0) == []


# ---- however it ends, nothing is left


@pytest.mark.parametrize("backend", BACKENDS)
def test_after_kill_9_in_the_middle_of_a_race_nothing_is_left(run, backend):
    race = run(make("race", LONG), LAB_KAFKA=backend)
    race.wait_for(*[BROKER] * (backend == "embedded"), SPARK, PROBE, JANITOR)
    assert len(list(race.temp.glob("lab-*"))) >= 1
    assert len(race.leftovers(within=0)) >= 4, "processes and folders are there to be left"
    race.kill_python()
    assert race.end() != 0
    assert race.leftovers() == []


@pytest.mark.parametrize(("while_", "runs"), [("Spark starts", SPARK), ("it measures", PROBE)])
def test_ctrl_c_ends_a_race_quietly_and_leaves_nothing(run, while_, runs):
    race = run(helpers(f"race {LONG}"), LAB_KAFKA="embedded")
    race.wait_for(runs)
    race.interrupt()
    assert race.end() == 130, race.said
    assert "Traceback" not in race.said
    assert "Stopped." in race.said
    assert race.leftovers() == []


def test_ctrl_c_in_a_call_to_spark_and_one_when_its_jvm_has_gone_show_no_stack(run):
    code = (
        "from helpers.engines.spark import start_spark, stop_spark\n"
        "spark = start_spark(2)\n"
        "try:\n"
        "    print('in the JVM', flush=True); spark._jvm.java.lang.Thread.sleep(60_000)\n"
        "except KeyboardInterrupt:\n"
        "    from py4j.protocol import Py4JNetworkError\n"
        "    def count():\n"
        "        try: return spark.range(3).count()\n"
        "        except Py4JNetworkError: return spark.range(3).count()  # py4j: the next answer may be empty, once\n"
        "    print('interrupted:', count(), flush=True)\n"
        "connection = spark.sparkContext._gateway._gateway_client.deque[0]\n"
        "stop_spark()\n"
        "import logging; logging.basicConfig(); connection.shutdown_socket(1, 2)  # as py4j does at Ctrl-C\n"
        "print('done')"
    )
    command = run([sys.executable, "-c", code])
    command.wait_for_line("in the JVM")
    time.sleep(1)
    command.interrupt()
    assert command.end() == 0, command.said
    assert command.said.splitlines() == ["in the JVM", "interrupted: 3", "done"]
    assert command.leftovers() == []


def test_ctrl_c_while_it_loads_its_packages_ends_quietly(run):
    for after in (0.4, 0.8, 1.2):
        race = run(helpers(f"race {LONG}"), LAB_KAFKA="embedded")
        time.sleep(after)
        race.interrupt()
        assert race.end() == 130, race.said
        assert "Traceback" not in race.said
        assert race.leftovers() == []


@pytest.mark.docker
def test_ctrl_c_while_the_container_starts_leaves_no_container(run):
    import docker

    def ours() -> set[str]:
        return {one.id for one in docker.from_env().containers.list(all=True, filters={"label": "lab.kafka"})}

    before = ours()
    race = run(helpers(f"race {LONG}"), LAB_KAFKA="testcontainers")
    race.wait_until(lambda: ours() - before, "a container was there")
    race.interrupt()
    assert race.end() == 130, race.said
    assert "Traceback" not in race.said
    assert race.leftovers() == []
    assert ours() <= before


def test_ctrl_c_on_make_while_the_broker_starts_fails_without_a_traceback(run):
    race = run(make("race", LONG), LAB_KAFKA="embedded")
    race.wait_for(BROKER)
    race.interrupt()
    assert race.end() != 0
    assert "Traceback" not in race.said
    assert race.leftovers() == []


# ---- a bad input gets a sentence: what each says is tested where it is said, here that it reaches the screen


def sorry(command: Command, sentence: str) -> None:
    """It fails with exit code 1, a sentence and no stack."""
    assert command.end() == 1, command.said
    assert re.search(rf"^Sorry: .*{sentence}", command.said, re.MULTILINE | re.DOTALL), command.said
    assert "Traceback" not in command.said
    assert command.leftovers() == []


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--rate 0", "rate=0: the probe sends from 1 to 20,000 events per second"),
        ("--rounds 0", "--rounds 0: choose from 1 to 20"),
    ],
)
@pytest.mark.parametrize("command", ["race", "bench"])
def test_an_impossible_option_gets_a_sentence_before_anything_starts(capsys, command, words, sentence):
    assert main([command, *words.split()]) == 1
    said = capsys.readouterr()
    assert said.err.startswith(f"\nSorry: {sentence}") and said.out == ""


def test_without_java_a_race_gets_a_sentence(run, tmp_path):
    race = run(helpers("race"), LAB_KAFKA="embedded", PATH=str(tmp_path), JAVA_HOME=None)
    sorry(race, r"There is no Java on this machine\. Install a Java 17 or newer")


def test_an_unreachable_broker_of_ones_own_gets_a_sentence(run, closed_port):
    race = run(helpers("race"), LAB_KAFKA_BOOTSTRAP=f"127.0.0.1:{closed_port}")
    sorry(race, rf"127\.0\.0\.1:{closed_port} cannot be used.*Check that a broker listens there")


def test_make_passes_the_failure_on(run):
    race = run(make("race"), LAB_PACE="nonsense")
    assert race.end() == 2
    assert "Sorry: LAB_PACE is 'nonsense': use quick or full." in race.said
    assert "Traceback" not in race.said


# ---- the other targets


def test_make_doctor_is_content_with_this_machine(run):
    doctor = run(make("doctor"))
    assert doctor.end() == 0, doctor.said
    assert "Ready: `make race` will run here." in doctor.said
    assert "FAIL" not in doctor.said


def test_the_doctors_command_fails_where_the_doctor_says_so(install_java, capsys):
    install_java("11.0.25")
    assert main(["doctor"]) == 1
    assert "Not ready yet: Java." in capsys.readouterr().out


def test_make_help_names_every_target(run):
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)) - {"help"}
    assert {"race", "lab", "test", "check", "bench", "doctor", "clean"} <= targets
    shown = run("make")
    assert shown.end() == 0
    assert targets - set(re.findall(r"make (\w+)", shown.said)) == set(), "targets that `make help` does not name"


def test_make_check_is_the_linter_and_the_fast_tests_only(run):
    plan = run("make -n check")
    assert plan.end() == 0
    assert re.search(r"ruff check \..*ruff format --check \.", plan.said)
    left_out = re.search(r'pytest .*-m "not \((.*)\)"', plan.said)[1].split(" or ")
    assert set(left_out) == {"engine", "docker", "commands", "browser"}


def test_a_second_setup_has_nothing_to_do_or_to_say(run):
    first = run("make setup")
    assert first.end() == 0, first.said
    made = (ROOT / ".venv" / ".ready").stat().st_mtime_ns
    second = run("make setup")
    assert second.end() == 0
    assert second.said == ""
    assert (ROOT / ".venv" / ".ready").stat().st_mtime_ns == made


# ---- make lab


class LabServer:
    """JupyterLab without a browser, at the address that it prints."""

    ADDRESS = re.compile(r"http://[\w.]+:\d+/\S+token=\w+(?=\s)")

    def __init__(self, command: Command) -> None:
        self.command = command
        command.wait_until(lambda: self.ADDRESS.search(command.said), "JupyterLab printed its address")
        self.url = self.ADDRESS.search(command.said)[0]
        self.base, self.token = self.url.split("/lab")[0], self.url.split("token=")[1]
        command.wait_until(lambda: self.status("/api") == 200, "it answered")

    def status(self, path: str) -> int:
        try:
            return urllib.request.urlopen(self.base + path, timeout=10).status
        except urllib.error.HTTPError as refused:
            return refused.code
        except OSError:
            return 0

    def api(self, path: str, **post: object) -> dict:
        ask = urllib.request.Request(self.base + path, headers={"Authorization": f"token {self.token}"})
        if post:
            ask.data, ask.method = json.dumps(post).encode(), "POST"
        with urllib.request.urlopen(ask, timeout=30) as answer:
            return json.load(answer)


def lab_settings(folder: Path) -> tuple[str, dict[str, str]]:
    """JupyterLab for a test: no browser of its own, any free port, none of this user's settings and files."""
    args = "--no-browser --port=0" + (" --allow-root" if os.geteuid() == 0 else "")
    places = ("JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "JUPYTERLAB_SETTINGS_DIR", "JUPYTERLAB_WORKSPACES_DIR")
    return args, {name: str(folder / name.lower()) for name in places}


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lab")
    args, places = lab_settings(folder)
    command = Command(make("lab", args), folder / "command", **places)
    try:
        yield LabServer(command)
    finally:
        command.kill()


def test_make_lab_opens_the_first_lesson_for_nobody_but_its_owner(lab):
    assert "/lab/tree/my_lessons/00_start_here.ipynb?token=" in lab.url
    assert re.fullmatch(r"http://(127\.0\.0\.1|localhost):\d+", lab.base)
    server = lab.command.find("jupyterlab")
    listening = {one.laddr.ip for one in server.net_connections("inet") if one.status == psutil.CONN_LISTEN}
    assert listening == {"127.0.0.1"}
    assert lab.status("/api/contents") == 403
    assert lab.status(f"/api/contents?token={lab.token}") == 200
    assert len(lab.token) >= 32


def test_make_lab_shows_the_whole_checkout(lab):
    """A lesson links to ../data: that must be inside what JupyterLab shows."""
    lesson = lab.url.split("/lab/tree/")[1].split("?")[0]
    linked = os.path.normpath(os.path.join(os.path.dirname(lesson), "../data/published.json"))
    assert lab.api(f"/api/contents/{linked}?content=0")["type"] == "file"


def test_the_kernel_of_make_lab_is_the_projects_and_ends_with_it(lab):
    assert list(lab.api("/api/kernelspecs")["kernelspecs"]) == ["python3"]
    lab.api("/api/kernels", name="python3")
    lab.command.wait_for("ipykernel_launcher")
    kernel = lab.command.find("ipykernel_launcher")
    assert kernel.cmdline()[0] == str(ROOT / ".venv" / "bin" / "python")
    lab.command.interrupt()
    lab.command.end()
    assert lab.command.leftovers() == []
    assert not alive(kernel)
