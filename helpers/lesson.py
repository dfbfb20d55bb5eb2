"""The lesson kit: predict, measure, judge, practise. It prints only what is the same on every machine."""

import html
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from string import ascii_lowercase

from helpers.errors import LabError

# -- predictions


@dataclass(frozen=True)
class Prediction:
    """A question, its choices (a, b, c, …) and what the learner chose, if anything."""

    question: str
    choices: tuple[str, ...]
    mine: str | None = None

    def letter(self, answer: object) -> str:
        """The letter of a choice that is given by its letter or by its words."""
        wanted = str(answer).strip().rstrip(").").lower()
        for letter, choice in zip(ascii_lowercase, self.choices, strict=False):
            if wanted in (letter, choice.strip().rstrip(").").lower()):
                return letter
        known = ", ".join(f'"{letter}"' for letter in ascii_lowercase[: len(self.choices)])
        raise LabError(f"{answer!r} is none of the choices: write one of {known}, or None.")

    def words(self, letter: str) -> str:
        return f"{letter}) {self.choices[ascii_lowercase.index(letter)]}"


def predict(question: str, choices: Sequence[str], mine: str | None = None) -> Prediction:
    """Print the question and its choices, and remember what you expect. None is fine: nothing breaks."""
    asked = Prediction(question, tuple(choices))
    print(question)
    for letter in ascii_lowercase[: len(choices)]:
        print(f"  {asked.words(letter)}")
    if _unanswered(mine):
        print("No prediction yet: a guess now makes the result stick. Nothing breaks without one.")
        return asked
    chosen = asked.letter(mine)
    print(f"You predict {chosen}.")
    return Prediction(question, asked.choices, chosen)


def bucket(value: float, *edges: float) -> str:
    """Which choice a measured value belongs to: "a" below the first edge, "b" below the second, …"""
    return ascii_lowercase[sum(value >= edge for edge in edges)]


def reveal(prediction: Prediction, actual: str) -> None:
    """Print what was measured, as a choice (a letter or its words), and how the prediction fared."""
    true = prediction.letter(actual)
    print(f"Measured: {prediction.words(true)}.")
    if prediction.mine is None:
        print("You made no prediction this time.")
    elif prediction.mine == true:
        print("✓ Just as you predicted.")
    else:
        print(f"You predicted {prediction.words(prediction.mine)}. What did you assume that is not so?")


# -- verdicts


@dataclass(frozen=True)
class Claim:
    """A sentence, whether it held, and the values behind it, which are shown only if it did not."""

    sentence: str
    holds: bool
    details: dict = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{'✓' if self.holds else '✗'} {self.sentence}"

    @property
    def explained(self) -> str:
        values = ", ".join(f"{name} = {_short(value)}" for name, value in self.details.items())
        return f"“{self.sentence}”" + (f" ({values})" if values else "")


class VerdictError(AssertionError):
    """A claim of the lesson did not hold on this machine, this time."""

    def _render_traceback_(self) -> list[str]:
        """IPython calls this: show the sentences, not the stack."""
        return [f"VerdictError: {self}"]


def claim(sentence: str, holds: bool, **details: object) -> Claim:
    """One thing that the measurement shows. Give the values as details: they help if it does not hold."""
    return Claim(sentence, bool(holds), details)


def verdict(*claims: Claim) -> None:
    """Print ✓ or ✗ for each claim, never a measured number; raise if one does not hold."""
    if not claims:
        raise LabError("A verdict needs at least one claim(…).")
    for one in claims:
        print(one)
    failed = [one for one in claims if not one.holds]
    if failed:
        raise VerdictError(
            f"{len(failed)} of {len(claims)} did not hold this time: {'; '.join(one.explained for one in failed)}. "
            "Is something else busy on this machine? Run the measurement again; if it stays so, you found something."
        )


def _short(value: object) -> str:
    return f"{value:,.4g}" if isinstance(value, float) else str(value)


# -- exercises


def check(answer: object, expected: object, hint: str = "", within: float = 0.0) -> None:
    """Say whether an exercise is solved; never raise.

    `expected` is a value, or a function that gets the answer and says True or False. A number may be off by
    the share `within` (0.1: a tenth).
    """
    if _unanswered(answer):
        print("○ Not answered yet: put your answer in and run this cell again.")
        return
    try:
        right = _matches(answer, expected, within)
    except Exception:  # whatever a learner's answer does to a comparison, the lesson goes on
        right = False
    if right:
        print("✓ Right.")
    else:
        print("✗ Not yet." + (f" Hint: {hint}" if hint else ""))


def _unanswered(answer: object) -> bool:
    return answer is None or answer is ...


def _matches(answer: object, expected: object | Callable[[object], bool], within: float) -> bool:
    if callable(expected):
        return bool(expected(answer))
    if isinstance(expected, str):
        return str(answer).strip().casefold() == expected.strip().casefold()
    if within:
        return abs(float(answer) - expected) <= within * abs(expected)
    return bool(answer == expected)


# -- quiz


def quiz(*questions: tuple[str, str] | tuple[str, Sequence[str], str]) -> None:
    """Questions with folded answers: `(question, answer)` or `(question, choices, answer)` each.

    `code` in backticks is set as code. Where HTML is not shown, the answers follow the questions.
    """
    from IPython.display import display

    asked = [(one[0], list(one[1]) if len(one) == 3 else [], one[-1]) for one in questions]
    bundle = {"text/html": _as_html(asked), "text/plain": _as_text(asked)}
    if _in_ipython():
        display(bundle, raw=True)
    else:
        print(bundle["text/plain"])


def _as_html(asked: list[tuple[str, list[str], str]]) -> str:
    blocks = []
    for number, (question, choices, answer) in enumerate(asked, 1):
        items = "".join(f"<li>{_inline(choice)}</li>" for choice in choices)
        options = f'<ol type="a" style="margin: 0.3em 0 0.3em 1.6em">{items}</ol>' if choices else ""
        blocks.append(
            f'<div style="margin: 0 0 1em 0"><div><b>{number}.</b> {_inline(question)}</div>{options}'
            '<details style="margin: 0.3em 0 0 1.2em"><summary style="cursor: pointer">Answer</summary>'
            f'<div style="margin: 0.3em 0 0 1em">{_inline(answer)}</div></details></div>'
        )
    return '<div style="font-size: 1.05em; line-height: 1.5; max-width: 52em">' + "".join(blocks) + "</div>"


def _as_text(asked: list[tuple[str, list[str], str]]) -> str:
    lines = []
    for number, (question, choices, _) in enumerate(asked, 1):
        lines += [f"{number}. {question}"]
        lines += [f"   {letter}) {choice}" for letter, choice in zip(ascii_lowercase, choices, strict=False)]
    lines += ["", "Answers", *(f"{number}. {answer}" for number, (_, _, answer) in enumerate(asked, 1))]
    return "\n".join(lines)


def _inline(text: str) -> str:
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text))


def _in_ipython() -> bool:
    from IPython import get_ipython

    return get_ipython() is not None
