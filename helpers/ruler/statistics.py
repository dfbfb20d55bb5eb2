"""Percentiles, and how sure a ratio of two of them is."""

from dataclasses import dataclass

import numpy as np

PERCENTILES = {"p50": 50, "p90": 90, "p95": 95, "p99": 99, "p99.9": 99.9, "max": 100}  # what a table lists
HEADLINE = {"p50": 50, "p99": 99}  # what a claim is made of: the median and the tail


def ms(value: float) -> str:
    """Milliseconds as people say them: 2.1, 15, 1,017."""
    return f"{value:,.1f}" if abs(value) < 9.95 else f"{value:,.0f}"


@dataclass(frozen=True)
class Ratio:
    """How many times larger one run's percentile is, with a 95 % interval; `why` says what is missing."""

    value: float
    low: float = np.nan
    high: float = np.nan
    why: str = ""

    def __str__(self) -> str:
        return f"{self.value:,.1f}× ({self.interval})" if np.isfinite(self.value) else f"no ratio: {self.why}"

    @property
    def interval(self) -> str:
        """The 95 % interval in words, or why there is none."""
        return f"95 %: {self.low:,.1f} to {self.high:,.1f}" if np.isfinite(self.low) else f"no interval: {self.why}"


Rounds = list[list[np.ndarray]]  # the latencies of a run: round by round, in each second by second
LEAST_ROUNDS, LEAST_SECONDS = 4, 3  # below these an interval would only look like one
STUDENT = (12.7, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23)  # two-sided 95 %, by degrees of freedom
NORMAL = 1.96


def ratio_of_rounds(slow: Rounds, fast: Rounds, which: float = 50, draws: int = 300, seed: int = 1) -> Ratio:
    """The ratio of one percentile of two runs, with an interval that covers the spread between rounds as well.

    Neighbouring latencies resemble each other (they share a batch, a pause), and so do the seconds of a round (one
    JIT, one set of topics): the bootstrap draws whole rounds, and of those whole seconds. With few rounds that is too
    narrow, as every bootstrap is: Student's t and n ÷ (n - 1) make up for it. `tests/test_statistics.py` shows how
    often the interval covers the truth.
    """
    value = float(np.percentile(_joined(slow), which) / np.percentile(_joined(fast), which))
    if min(len(slow), len(fast)) < LEAST_ROUNDS:
        return Ratio(value, why=f"fewer than {LEAST_ROUNDS} rounds")
    if min(len(seconds) for seconds in (*slow, *fast)) < LEAST_SECONDS:
        return Ratio(value, why=f"rounds shorter than {LEAST_SECONDS} s")
    rng = np.random.default_rng(seed)
    spread = [_variance(rounds, which, draws, rng) for rounds in (slow, fast)]
    freedom = sum(spread) ** 2 / sum(v**2 / (len(rounds) - 1) for v, rounds in zip(spread, (slow, fast), strict=True))
    student = STUDENT[int(freedom) - 1] if freedom < len(STUDENT) + 1 else NORMAL
    away = float(np.exp(student * np.sqrt(sum(spread))))
    return Ratio(value, value / away, value * away)


def _variance(rounds: Rounds, which: float, draws: int, rng: np.random.Generator) -> float:
    """Of the percentile's logarithm, over bootstrap draws."""
    drawn = np.log(redraw(rounds, which, draws, rng))
    return float(np.var(drawn)) * len(rounds) / (len(rounds) - 1)


def redraw(rounds: Rounds, which: float, draws: int, rng: np.random.Generator) -> np.ndarray:
    """Percentiles of `draws` bootstrap samples: as many rounds as there are, each with as many seconds as it has."""

    def draw() -> np.ndarray:
        picked = (rounds[i] for i in rng.integers(len(rounds), size=len(rounds)))
        return np.concatenate([seconds[i] for seconds in picked for i in rng.integers(len(seconds), size=len(seconds))])

    return np.array([np.percentile(draw(), which) for _ in range(draws)])


def _joined(rounds: Rounds) -> np.ndarray:
    return np.concatenate([second for seconds in rounds for second in seconds])
