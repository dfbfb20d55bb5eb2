"""The lesson kit: predict, measure, judge, practise. What differs from run to run stands in "(measured: …)".

What is right in an exercise or a quiz stands in `data/answers`, one file per lesson: a cell only names the question.
"""

import html
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from string import ascii_lowercase
from typing import Any

from helpers.errors import LabError
from helpers.settings import ROOT

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
    """A sentence, whether it held, and what was measured, which stands beside it."""

    sentence: str
    holds: bool
    measured: str = ""

    def __str__(self) -> str:
        """nbval compares the tick and the sentence; what stands in "(measured: …)" it leaves alone."""
        beside = f" (measured: {self.measured})" if self.measured else ""
        return f"{'✓' if self.holds else '✗'} {self.sentence}{beside}"


class VerdictError(AssertionError):
    """A claim of the lesson did not hold on this machine, this time."""

    def _render_traceback_(self) -> list[str]:
        """IPython calls this: show the sentences, not the stack."""
        return [f"VerdictError: {self}"]


def claim(sentence: str, holds: bool, measured: object = "", **more: object) -> Claim:
    """One thing that the measurement shows, and the number behind it: in your words, or as names and values."""
    words = [_short(measured)] if measured != "" else []
    words += [f"{name} {_short(value)}" for name, value in more.items()]
    said = ", ".join(words)
    if "(" in said or ")" in said:
        raise LabError(f"What a claim has measured stands in brackets itself, so leave them out: {said!r}.")
    return Claim(sentence, bool(holds), said)


def verdict(*claims: Claim) -> None:
    """Print ✓ or ✗ for each claim with what was measured; raise if one does not hold."""
    if not claims:
        raise LabError("A verdict needs at least one claim(…).")
    for item in claims:
        print(item)
    failed = [item for item in claims if not item.holds]
    if failed:
        raise VerdictError(
            f"{len(failed)} of {len(claims)} did not hold this time: {'; '.join(str(item)[2:] for item in failed)}. "
            "Is something else busy on this machine? Run the measurement again; if it stays so, you found something."
        )


def _short(value: object) -> str:
    if isinstance(value, float):  # numpy's, too
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


# -- exercises


def check(name: str, answer: object) -> None:
    """Say whether an exercise ("02.slots") is solved, with a hint if not, and a plainer one the next time; never raise.

    A number may be off by the share `within` that the answers' file allows.
    """
    exercise = exercise_of(name)
    if _unanswered(answer):
        print("○ Not answered yet: put your answer in and run this cell again.")
        return
    try:
        right = _matches(answer, exercise["answer"], exercise.get("within", 0.0))
    except Exception:  # whatever a learner's answer does to a comparison, the lesson goes on
        right = False
    if right:
        print("✓ Right.")
        return
    tries = _tries[name] = _tries.get(name, 0) + 1
    hints = exercise["hints"]
    print(f"✗ Not yet. Hint: {hints[min(tries, len(hints)) - 1]}")


_tries: dict[str, int] = {}


def exercise_of(name: str) -> dict:
    """An exercise by its name: `answer`, `hints`, and perhaps `within`."""
    lesson, _, exercise = name.partition(".")
    known = answers(lesson).get("exercises", {})
    if exercise not in known:
        raise LabError(f"There is no exercise {name!r}. Lesson {lesson} has {', '.join(known) or 'none'}.")
    return known[exercise]


def answers(lesson: str) -> dict:
    """What is right in a lesson ("02"): its exercises and its quiz."""
    files = sorted((ROOT / "data" / "answers").glob(f"{lesson}_*.toml")) if lesson else []
    if not files:
        raise LabError(f"There is no lesson {lesson!r}: name it by its number, such as 02.")
    return tomllib.loads(files[0].read_text())


def _unanswered(answer: object) -> bool:
    return answer is None or answer is ...


def _matches(answer: Any, expected: Any, within: float) -> bool:
    if isinstance(expected, str):
        return str(answer).strip().casefold() == expected.strip().casefold()
    if within:
        return abs(float(answer) - expected) <= within * abs(expected)
    return bool(answer == expected)


# -- quiz


def quiz(lesson: str) -> None:
    """The questions of a lesson ("02") with folded answers.

    `code` in backticks is set as code. Where HTML is not shown, the answers follow the questions.
    """
    from IPython.display import display

    asked = [(item["question"], item.get("choices", []), item["answer"]) for item in answers(lesson)["quiz"]]
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
