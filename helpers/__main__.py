"""`python -m helpers race | bench | lab | fresh | record | doctor | jars`: what the Makefile calls."""

import argparse
import atexit
import os
import signal
import sys

from helpers.errors import LabError

INTERRUPTED = 130  # as shells count it


def main(words: list[str] | None = None) -> int:
    parser = _parser()
    options, options.words = parser.parse_known_args(words)
    if options.words and options.run is not _lab:
        parser.error(f"unrecognized arguments: {' '.join(options.words)}")
    try:
        return options.run(options) or 0
    except LabError as problem:
        print(f"\nSorry: {problem}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nStopped. Broker, probe and Spark are ended.", file=sys.stderr)
        return INTERRUPTED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m helpers", description="Microbatch to Milliseconds")
    commands = parser.add_subparsers(required=True, metavar="command")
    race = commands.add_parser("race", help="micro-batch against Real-Time Mode, live in this terminal")
    race.set_defaults(run=_race)
    bench = commands.add_parser("bench", help="the full protocol: every figure the series claims, as ratios")
    bench.set_defaults(run=_bench)
    bench.add_argument("--only", choices=["knee"], help="a part of it: how much load each mode can take")
    for command in (race, bench):
        command.add_argument("--rate", type=int, help="events per second")
        command.add_argument("--seconds", type=float, help="measured seconds per run")
        command.add_argument("--warmup", type=float, help="seconds before that, dropped")
        command.add_argument("--rounds", type=int, default=4, help="interleaved rounds (default 4: fewer, no interval)")
    lab = commands.add_parser("lab", help="the series in JupyterLab; further words go to JupyterLab")
    lab.set_defaults(run=_lab)
    fresh = commands.add_parser("fresh", help="put an untouched lesson into my_lessons; your own version is kept")
    fresh.set_defaults(run=_fresh)
    fresh.add_argument("lessons", nargs="*", metavar="lesson", help="for example 03")
    record = commands.add_parser("record", help="run notebooks top to bottom and store their outputs")
    record.set_defaults(run=_record)
    record.add_argument("notebooks", nargs="*", help="all of them if none is named")
    commands.add_parser("doctor", help="what this machine has and lacks").set_defaults(run=_doctor)
    jars = commands.add_parser("jars", help="fetch and verify the jars")
    jars.set_defaults(run=_jars)
    jars.add_argument("--lock", action="store_true", help="make jars.lock anew from jars.xml instead")
    return parser


def _race(options: argparse.Namespace) -> None:
    from helpers.commands.race import default_load, race

    race(_load(default_load(), options), _rounds(options))


def _bench(options: argparse.Namespace) -> None:
    from helpers.commands.bench import PROTOCOL, bench, knee_alone

    load, rounds = _load(PROTOCOL, options), _rounds(options)
    knee_alone(load) if options.only == "knee" else bench(load, rounds)


def _lab(options: argparse.Namespace) -> None:
    from helpers.commands.lessons import lab

    lab(options.words)


def _fresh(options: argparse.Namespace) -> None:
    from helpers.commands.lessons import fresh

    fresh(options.lessons)


def _record(options: argparse.Namespace) -> None:
    from helpers.commands.record import record

    record(options.notebooks)


def _doctor(_: argparse.Namespace) -> int:
    from helpers.engines.doctor import doctor

    return 0 if doctor() else 1


def _jars(options: argparse.Namespace) -> None:
    from helpers.engines import jars

    (jars.relock if options.lock else jars.ensure)()


def _load(load, options: argparse.Namespace):
    given = {name: getattr(options, name) for name in ("rate", "seconds", "warmup")}
    return load.changed(**{name: value for name, value in given.items() if value is not None})


def _rounds(options: argparse.Namespace) -> int:
    if not 1 <= options.rounds <= 20:
        raise LabError(f"--rounds {options.rounds}: choose from 1 to 20.")
    return options.rounds


def _leave(code: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # all is ended: a second Ctrl-C could only break the exit
    if code == INTERRUPTED:  # in the middle of an import, perhaps: Python would not always survive its own exit
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


if __name__ == "__main__":
    _leave(main())
