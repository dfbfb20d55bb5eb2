"""What this machine has and lacks: a line per need, with the fix for each."""

import os
import sys
from collections.abc import Callable

from helpers.engines import checks, settings_checks
from helpers.engines.checks import FAIL, OK, WARNING, Check

COLOURS = {OK: "\033[32m", WARNING: "\033[33m", FAIL: "\033[31m"}


def doctor(say: Callable[[str], object] = print) -> bool:
    """Print a line per need and the fix below those that have one. True if nothing FAILed."""
    every = examine()
    wide = max(len(check.what) for check in every)
    for check in every:
        say(f"{_badge(check.status)}  {check.what:<{wide}}  {check.found}")
        if check.fix:
            say(f"{'':<{wide + 15}}→ {check.fix}")
    failed = [check.what for check in every if check.status == FAIL]
    say(f"Not ready yet: {', '.join(failed)}. Fix this first." if failed else "Ready: `make race` will run here.")
    return not failed


def examine() -> list[Check]:
    """All checks, in the order in which a newcomer would meet them."""
    python = checks.python()
    if python.status == FAIL:
        return [python]  # the others may not even run
    machine = [checks.packages(), checks.java_(), checks.memory(), checks.cores()]
    kafka_and_spark = [settings_checks.slots(), settings_checks.docker(), checks.jars_(), checks.disk()]
    return [python, *machine, *kafka_and_spark, *settings_checks.variables()]


def _badge(status: str) -> str:
    badge = f"[{status:^9}]"
    return f"{COLOURS[status]}{badge}\033[0m" if sys.stdout.isatty() and "NO_COLOR" not in os.environ else badge
