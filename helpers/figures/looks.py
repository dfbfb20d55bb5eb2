"""Who has which colour, line and marker: the same mode has the same in every lesson."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.colors import to_hex, to_rgb

from helpers.ruler.trace import Trace


@dataclass(frozen=True)
class Look:
    """How one trace is drawn. The line and the marker say the same as the colour does."""

    colour: str
    line: object = "-"
    marker: str = "o"

    @property
    def text(self) -> str:
        """The colour, dark enough to read as text."""
        return mix(self.colour, "black", 0.25)


# Okabe and Ito's colour-blind safe set
FAMILIES = {
    "real-time": Look("#0072B2", "-", "o"),
    "micro-batch": Look("#D55E00", (0, (6, 2)), "s"),
    "untuned": Look("#E69F00", (0, (2, 1.5)), "^"),
    "continuous": Look("#CC79A7", (0, (8, 2, 2, 2)), "D"),
    "flink": Look("#009E73", (0, (4, 1.5, 1, 1.5)), "v"),
    "ruler": Look("#666666", (0, (1, 1)), "P"),
}
# The first that matches a name wins: "micro-batch, as installed" is untuned.
NAMES = {
    "untuned": r"untuned|as installed",
    "ruler": r"ruler|confluent|kafka-python|loop",
    "flink": r"flink",
    "continuous": r"continuous",
    "real-time": r"real[\s_-]*time|\breal\b|\brtm\b",
    "micro-batch": r"micro",
}
TRIGGERS = {"realTime": "real-time", "continuous": "continuous", "processingTime": "micro-batch"}
OTHERS = ("#56B4E9", "#882255", "#999933", "#332288", "#44AA99", "#CC6677")
# Several runs of one mode: how much of what is mixed into its colour
SHADES = [
    (0, "white"),
    (0.5, "white"),
    (0.55, "black"),
    (0.72, "white"),
    (0.3, "black"),
    (0.28, "white"),
    (0.75, "black"),
]
_seen: dict[str, int] = {}


def family_of(what: Trace | str) -> str | None:
    """Which of the compared modes this is, by its name or else by its trigger."""
    name = what.name if isinstance(what, Trace) else what
    for family, pattern in NAMES.items():
        if re.search(pattern, name, re.IGNORECASE):
            return family
    triggers = what.meta.get("trigger", {}) if isinstance(what, Trace) else {}
    return next((family for key, family in TRIGGERS.items() if key in triggers), None)


def look_of(what: Trace | str) -> Look:
    """The look of a mode; any other name gets one of its own and keeps it."""
    family = family_of(what)
    if family is not None:
        return FAMILIES[family]
    name = what.name if isinstance(what, Trace) else what
    number = _seen.setdefault(name, len(_seen))
    lines = [look.line for look in FAMILIES.values()]
    return Look(OTHERS[number % len(OTHERS)], lines[number % len(lines)], "osD^vP"[number % 6])


def looks(those: Sequence[Trace | str]) -> list[Look]:
    """One look each. Several runs of one mode share its hue, in different shades, lines and markers."""
    chosen: list[Look] = []
    families: dict[str, int] = {}
    others = list(FAMILIES.values())
    for what in those:
        look, family = look_of(what), family_of(what)
        number = families.get(family, 0) if family else 0
        if family:
            families[family] = number + 1
        if number:
            share, towards = SHADES[number % len(SHADES)]
            twin = others[number % len(others)]
            look = Look(mix(look.colour, towards, share), twin.line, twin.marker)
        chosen.append(look)
    return chosen


def mix(colour: str, towards: str, share: float) -> str:
    """`colour` with a share of another."""
    return to_hex((1 - share) * np.array(to_rgb(colour)) + share * np.array(to_rgb(towards)))


def is_light(colour: str) -> bool:
    """True if dark letters can be read on it."""
    return np.dot(to_rgb(colour), [0.3, 0.6, 0.1]) > 0.5
