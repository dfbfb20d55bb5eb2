"""The lesson kit: what it prints is the same on every machine, and Run All never breaks on an open exercise."""

import numpy as np
import pytest

from helpers import lesson
from helpers.errors import LabError
from helpers.lesson import VerdictError, bucket, check, claim, predict, quiz, reveal, verdict

QUESTION = "How much lower is the p50?"
CHOICES = ["about the same", "about 10 times", "more than 50 times"]


def test_an_open_prediction_prints_the_same_each_time(capsys):
    for _ in range(2):
        guess = predict(QUESTION, CHOICES)
        reveal(guess, "c")
    said = capsys.readouterr().out
    assert said[: len(said) // 2] * 2 == said
    assert QUESTION in said and "  b) about 10 times\n" in said
    assert "Measured: c) more than 50 times.\nYou made no prediction" in said


@pytest.mark.parametrize("mine", ["c", "C", "c)", " c ", "more than 50 times"])
def test_a_right_prediction_is_recognised(capsys, mine):
    reveal(predict(QUESTION, CHOICES, mine=mine), "c")
    assert "✓ Just as you predicted." in capsys.readouterr().out


def test_a_wrong_prediction_is_recalled(capsys):
    reveal(predict(QUESTION, CHOICES, mine="a"), "c")
    assert "You predicted a) about the same." in capsys.readouterr().out


def test_an_impossible_prediction_says_what_is_possible():
    with pytest.raises(LabError, match='"a", "b", "c", or None'):
        predict(QUESTION, CHOICES, mine="d")


def test_a_measured_value_falls_into_its_choice():
    assert [bucket(value, 3, 30) for value in (1, 3, 29, 30, 1e9)] == ["a", "b", "b", "c", "c"]


def test_a_verdict_shows_the_number_beside_its_tick(capsys):
    verdict(
        claim(
            "Real-Time p50 is at least 10 times lower", np.float64(250) / 2 > 10, micro=250.123, real=np.float64(2.5)
        ),
        claim("it is 100 times lower", True, f"{250.123 / 2.5:.0f}×"),
        claim("nothing was lost", True, lost=0, sent=120_000),
        claim("Spark refused it", True),
    )
    assert capsys.readouterr().out.splitlines() == [
        "✓ Real-Time p50 is at least 10 times lower (measured: micro 250, real 2.5)",
        "✓ it is 100 times lower (measured: 100×)",
        "✓ nothing was lost (measured: lost 0, sent 120,000)",
        "✓ Spark refused it",
    ]


def test_a_false_claim_is_shown_and_raises_with_its_values(capsys):
    with pytest.raises(AssertionError) as caught:
        verdict(claim("nothing was lost", True), claim("p99 is lower", 12.0 < 3.0, micro=3.0, real=1234.5678))
    assert capsys.readouterr().out == "✓ nothing was lost\n✗ p99 is lower (measured: micro 3, real 1,235)\n"
    assert "1 of 2" in str(caught.value) and "p99 is lower (measured: micro 3, real 1,235)" in str(caught.value)
    assert isinstance(caught.value, VerdictError)
    assert caught.value._render_traceback_() == [f"VerdictError: {caught.value}"]


def test_brackets_in_a_number_are_refused_for_nbval_would_compare_the_rest():
    with pytest.raises(LabError, match="leave them out"):
        claim("it is fast", True, "3 ms (about)")


def test_a_verdict_without_claims_is_refused():
    with pytest.raises(LabError, match="at least one claim"):
        verdict()


@pytest.fixture
def exercise(monkeypatch):
    """A lesson of which only this one exercise is known."""

    def known(answer, within=0.0, hints=("count the slots", "there are 48")):
        one = {"answer": answer, "within": within, "hints": list(hints)}
        monkeypatch.setattr(lesson, "answers", lambda _: {"exercises": {"one": one}})
        monkeypatch.setattr(lesson, "_tries", {})

    return known


@pytest.mark.parametrize("answer", [None, ...])
def test_an_open_exercise_gives_nothing_away(capsys, exercise, answer):
    exercise(48)
    check("99.one", answer)
    said = capsys.readouterr().out
    assert said.startswith("○ Not answered yet") and "slots" not in said


@pytest.mark.parametrize(
    ("answer", "expected", "within"),
    [(48, 48, 0), (48.0, 48, 0), ("AddBatch ", "addBatch", 0), (95, 100, 0.1), ("95", 100, 0.1), ([1, 2], [1, 2], 0)],
)
def test_a_right_answer_is_accepted(capsys, exercise, answer, expected, within):
    exercise(expected, within)
    assert check("99.one", answer) is None
    assert capsys.readouterr().out == "✓ Right.\n"


@pytest.mark.parametrize(
    ("answer", "expected", "within"),
    [(47, 48, 0), ("walCommit", "addBatch", 0), (80, 100, 0.1), ("many", 100, 0.1), (np.arange(3), 1, 0)],
)
def test_a_wrong_answer_gets_a_hint_then_a_plainer_one_and_no_error(capsys, exercise, answer, expected, within):
    exercise(expected, within)
    for _ in range(3):
        check("99.one", answer)
    said = capsys.readouterr().out.splitlines()
    assert said == ["✗ Not yet. Hint: count the slots"] + 2 * ["✗ Not yet. Hint: there are 48"]


@pytest.mark.parametrize(
    ("name", "sentence"), [("02.slotz", "Lesson 02 has slots"), ("77.x", "no lesson '77'"), ("", "no lesson ''")]
)
def test_a_question_that_does_not_exist_gets_a_sentence(name, sentence):
    with pytest.raises(LabError, match=sentence):
        check(name, 1)


def test_a_quiz_reads_as_plain_text_too(capsys, monkeypatch):
    questions = [
        {"question": "What is `p99`?", "answer": "One in 100 is slower."},
        {"question": "Which?", "choices": ["this", "that"], "answer": "b) that"},
    ]
    monkeypatch.setattr(lesson, "answers", lambda _: {"quiz": questions})
    quiz("99")
    said = capsys.readouterr().out
    assert said.index("1. What is") < said.index("   b) that") < said.index("Answers") < said.index("One in 100")


def test_a_quiz_folds_its_answers_and_escapes_what_it_shows():
    from helpers.lesson import _as_html

    page = _as_html([("Is `a < b`?", [], "yes & no")])
    assert "<code>a &lt; b</code>" in page
    question, answer = page.split("<details", 1)
    assert "yes &amp; no" in answer and "yes" not in question
