"""How long to measure: `quick` for CI and impatient people, `full` for the numbers."""

import os

from helpers.errors import LabError

PACES = ("quick", "full")


def pace() -> str:
    """LAB_PACE: quick (default) or full."""
    chosen = (os.environ.get("LAB_PACE") or "quick").strip().lower()
    if chosen not in PACES:
        raise LabError(f"LAB_PACE is {chosen!r}: it can be {' or '.join(PACES)}.")
    return chosen
