"""How often the interval of a ratio covers the truth, and when there is none: simulated runs whose truth is known."""

import numpy as np
import pytest

from helpers.ruler.statistics import Rounds, ratio_of_rounds

TRIALS, SECONDS, PER_SECOND = 150, 5, 100
BETWEEN, WITHIN, EVENTS = 0.2, 0.3, 0.5  # spread of rounds, of the seconds of a round, of the events of a second


def simulated(median: float, rng: np.random.Generator, rounds: int = 4, seconds: int = SECONDS, spread=BETWEEN):
    """Rounds differ, the seconds of a round differ, the events of a second differ: as on a real machine."""

    def second(level: float) -> np.ndarray:
        return level * np.exp(rng.normal(0, WITHIN)) * np.exp(rng.normal(0, EVENTS, PER_SECOND))

    levels = median * np.exp(rng.normal(0, spread, rounds))
    return [[second(level) for _ in range(seconds)] for level in levels]


def coverage(which: float, rounds: int) -> float:
    """The share of simulated experiments whose interval contains the true ratio, which is 50."""
    rng = np.random.default_rng(5)
    found = [
        ratio_of_rounds(simulated(100, rng, rounds), simulated(2, rng, rounds), which, draws=60, seed=trial)
        for trial in range(TRIALS)
    ]
    assert all(ratio.low < ratio.value < ratio.high for ratio in found)
    return sum(ratio.low <= 50 <= ratio.high for ratio in found) / TRIALS


@pytest.mark.parametrize("which", [50, 99])
@pytest.mark.parametrize("rounds", [4, 8])
def test_the_interval_covers_the_truth_about_as_often_as_it_says(which, rounds):
    assert 0.91 <= coverage(which, rounds) <= 1.0


def test_the_interval_knows_that_rounds_differ():
    """The same seconds dealt out anew: what was a difference between rounds is now one between seconds."""
    rng = np.random.default_rng(2)

    def dealt(rounds: Rounds) -> Rounds:
        seconds = [second for one in rounds for second in one]
        return [seconds[at::4] for at in range(4)]

    def width(slow: Rounds, fast: Rounds) -> float:
        made = ratio_of_rounds(slow, fast)
        return np.log(made.high / made.low)

    pairs = [(simulated(100, rng, spread=0.5), simulated(2, rng, spread=0.5)) for _ in range(5)]
    wider = [width(slow, fast) / width(dealt(slow), dealt(fast)) for slow, fast in pairs]
    assert np.median(wider) > 1.5


@pytest.mark.parametrize(
    ("rounds", "seconds", "why"), [(3, 10, "fewer than 4 rounds"), (4, 2, "rounds shorter than 3 s")]
)
def test_too_little_data_gives_a_ratio_and_no_interval(rounds, seconds, why):
    rng = np.random.default_rng(1)
    made = ratio_of_rounds(simulated(100, rng, rounds, seconds), simulated(2, rng, rounds, seconds))
    assert np.isnan(made.low) and np.isnan(made.high) and np.isfinite(made.value)
    assert str(made).endswith(f"(no interval: {why})")


def test_a_ratio_reads_as_a_sentence():
    exact = ([[np.full(50, 200.0)] * 3] * 4, [[np.full(50, 2.0)] * 3] * 4)
    assert str(ratio_of_rounds(*exact)) == "100.0× (95 %: 100.0 to 100.0)"
