"""Percentiles, and how sure a ratio of two of them is."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

PERCENTILES = {"p50": 50, "p90": 90, "p95": 95, "p99": 99, "p99.9": 99.9, "max": 100}  # what a table lists
HEADLINE = {"p50": 50, "p99": 99}  # what a claim is made of: the median and the tail


def ms(value: float) -> str:
    """Milliseconds as people say them: 2.1, 15, 1,017."""
    return f"{value:,.1f}" if abs(value) < 9.95 else f"{value:,.0f}"


@dataclass(frozen=True)
class Ratio:
    """How many times larger one run's percentile is, with a 95 % bootstrap interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:,.1f}× (95 %: {self.low:,.1f} to {self.high:,.1f})"


def ratio_of_blocks(
    slow: list[np.ndarray], fast: list[np.ndarray], which: float = 50, draws: int = 300, seed: int = 1
) -> Ratio:
    """The ratio of one percentile of two runs, each given as its seconds.

    Neighbouring latencies resemble each other (they share a batch, a pause), so the bootstrap draws
    whole seconds, not single samples: an interval from single samples would be far too narrow.
    """
    rng = np.random.default_rng(seed)
    value = np.percentile(np.concatenate(slow), which) / np.percentile(np.concatenate(fast), which)
    if min(len(slow), len(fast)) < 2:
        return Ratio(float(value), np.nan, np.nan)  # nothing to draw from
    drawn = redraw(slow, which, draws, rng) / redraw(fast, which, draws, rng)
    low, high = np.percentile(drawn, [2.5, 97.5])
    return Ratio(float(value), float(low), float(high))


def redraw(
    blocks: list[np.ndarray], which: float | Sequence[float], draws: int, rng: np.random.Generator
) -> np.ndarray:
    """Percentiles of `draws` bootstrap samples, each made of as many whole blocks as there are."""
    picks = rng.integers(len(blocks), size=(draws, len(blocks)))
    return np.array([np.percentile(np.concatenate([blocks[i] for i in pick]), which) for pick in picks])
