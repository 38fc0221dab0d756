"""One run with many canaries: each was put in or left out by a fair coin, and the attacker guesses which.

The test of Steinke, Nasr and Jagielski 2023 (arXiv:2305.08846), with a bound for (ε, δ) that is exact (ours,
docs/proofs/audit.md): Corollary 5.4's is larger where it matters, and too small far below the mean.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import special, stats

from tightrope.audit.findings import Claimed, Verdict, claimed_points, seen_of
from tightrope.errors import InputError
from tightrope.numerics.checks import check_integer, check_probability, inner_probability, non_negative
from tightrope.randomness.bits import Source, Stream

LARGEST_SOUGHT = 60.0
"""Nats beyond which no ε is sought."""
HALVINGS_OF_CLAIM = 40
TAIL_MARGIN = 1e-9
"""Relative: p-values are binomial tails in floats."""
ADDED = 1e-290
"""Added to probabilities, which may be too small for a float."""
MOST_CANARIES = 10_000_000


@dataclass(frozen=True, slots=True)
class OneRun:
    """Of ``canaries`` examples the attacker guessed ``guesses``, a number fixed beforehand, and ``correct`` rightly.

    Each canary was in the data with probability ½, independently of everything; neighbors are add-or-remove-one.
    """

    canaries: int
    guesses: int
    correct: int
    confidence: float = 0.99

    def __post_init__(self) -> None:
        check_integer("canaries", self.canaries)
        inner_probability("confidence", self.confidence)
        if not self.canaries <= MOST_CANARIES:
            raise InputError("canaries", self.canaries, f"at most {MOST_CANARIES}")
        if not check_integer("guesses", self.guesses) <= self.canaries:
            raise InputError("guesses", self.guesses, "at most one a canary")
        if not check_integer("correct", self.correct, at_least=0) <= self.guesses:
            raise InputError("correct", self.correct, "at most all guesses")

    def p_value(self, epsilon: float, delta: float) -> float:
        """An upper bound on the probability of this many correct guesses in any (ε, δ)-private run.

        f(v) (1 + mδ (1 − f(v)) / (v P(B = v))) with B ~ Binomial(r, e^ε/(1+e^ε)) and f(v) = P(B ≥ v): the most that
        any attack reaches, or 1. At δ = 0 it is the theorem of the paper.
        """
        return self._tail_probability(non_negative("epsilon", epsilon), check_probability("delta", delta))

    def epsilon(self, delta: float) -> float:
        """A lower bound on the ε at a δ that was fixed beforehand."""
        return self._refuted_epsilon(check_probability("delta", delta), 1 - self.confidence)

    def delta(self, epsilon: float) -> float:
        """A lower bound on the δ at an ε ≥ 0 that was fixed beforehand."""
        return self._least_delta(non_negative("epsilon", epsilon), 1 - self.confidence)

    def against(self, claim: Claimed) -> Verdict:
        """Return whether the claim is refuted; its points share the chance to fail. It must be fixed beforehand.

        What could have been seen: the least ε of randomized response, one report a canary.
        """
        points = claimed_points(claim)
        failure = (1 - self.confidence) / len(points)
        epsilon, delta = max(points, key=lambda point: self._least_delta(point[0], failure) - point[1])
        proven = self._least_delta(epsilon, failure)
        seen = {} if proven > delta else {"randomized response": self._detectable_epsilon(*points[0], failure)}
        known = self._refuted_epsilon(delta, failure)
        return Verdict(proven > delta, self.confidence, epsilon, delta, known, proven, seen, seen_of(points))

    def _tail_bound(self, epsilon: float) -> tuple[float, float]:
        """f(v), and by how much of mδ the p-value is more."""
        if self.correct == 0:
            return 1.0, 0.0
        share = special.expit(epsilon)
        tail = float(stats.binom.sf(self.correct - 1, self.guesses, share)) * (1 + TAIL_MARGIN) + ADDED
        exactly = float(stats.binom.pmf(self.correct, self.guesses, share)) * (1 - TAIL_MARGIN) + ADDED
        return min(1.0, tail), max(0.0, 1 - tail) * tail / (self.correct * exactly)

    def _tail_probability(self, epsilon: float, delta: float) -> float:
        tail, slope = self._tail_bound(epsilon)
        return min(1.0, tail + self.canaries * delta * slope)

    def _refuted_epsilon(self, delta: float, failure: float) -> float:
        """The largest ε found that is refuted: every smaller one is, for private runs of it are private at more."""
        return _last_passing(lambda epsilon: self._tail_probability(epsilon, delta) < failure, 0.0)

    def _least_delta(self, epsilon: float, failure: float) -> float:
        tail, slope = self._tail_bound(epsilon)
        if not tail < failure:
            return 0.0
        most = self.canaries * slope
        return min(1.0, (failure - tail) * (1 - TAIL_MARGIN) / most) if most > 0 else 1.0

    def _detectable_epsilon(self, epsilon: float, delta: float, failure: float) -> float:
        """The least ε (or total variation, if claimed) whose median number of right guesses refutes."""

        def undetected_excess(size: float) -> bool:
            median = int(stats.binom.isf(0.5, self.guesses, special.expit(size)))
            return OneRun(self.canaries, self.guesses, median)._least_delta(epsilon, failure) <= delta

        if undetected_excess(LARGEST_SOUGHT):
            return math.inf
        size = _last_passing(undetected_excess, epsilon) + 2 * LARGEST_SOUGHT / 2.0**HALVINGS_OF_CLAIM
        return math.tanh(size / 2) if epsilon == 0 else size


def _last_passing(passes: Callable[[float], bool], low: float) -> float:
    """About where it ceases to pass between ``low`` and the largest ε, on the side that passes; ``low`` if nowhere."""
    high = LARGEST_SOUGHT
    for _ in range(HALVINGS_OF_CLAIM):
        middle = (low + high) / 2
        low, high = (middle, high) if passes(middle) else (low, middle)
    return low


def one_run(
    scores: ArrayLike,
    included: ArrayLike,
    *,
    guesses: int,
    confidence: float = 0.99,
    randomness: Source | None = None,
) -> OneRun:
    """The canaries with the highest scores are guessed to be in, those with the lowest to be out, the rest is left.

    Among equal scores it is drawn by lot who is guessed: their order may tell who was in.

    ``scores``: one number a canary, higher where it looks as if it had been in the data; ``included``: whether it was.
    ``guesses`` is how many are guessed, half of them each way; fix it before looking at ``included``. ``confidence`` is
    separately for each bound. Raises ``InputError`` for samples of unequal length, NaN, and more guesses than
    canaries.

    >>> found = one_run([3, 2, 1, 0] * 50, [True, True, False, False] * 50, guesses=100)
    >>> found.correct, found.epsilon(0.0) > 3
    (100, True)
    """
    try:
        values, truth = np.asarray(scores, dtype=np.float64), np.asarray(included)
    except (TypeError, ValueError):
        raise InputError("scores", "something else", "a list of numbers, one a canary") from None
    if values.ndim != 1 or values.shape != truth.shape or np.isnan(values).any():
        raise InputError("scores", f"shape {values.shape}", "one number, not NaN, for each entry of included")
    if not np.isin(truth, (0, 1)).all():
        raise InputError("included", "other values", "True or False, or 1 and 0")
    check_integer("guesses", guesses)
    order = np.lexsort(((randomness or Stream()).random_words(len(values)), -values))
    most, least = order[: (guesses + 1) // 2], order[len(order) - guesses // 2 :]
    correct = int(truth[most].astype(bool).sum()) + int((~truth[least].astype(bool)).sum())
    return OneRun(len(values), guesses, min(correct, guesses), confidence)
