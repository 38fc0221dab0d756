"""Audits by one run with many canaries: each is included by a fair coin, and the attacker guesses which were.

The test of Steinke, Nasr and Jagielski 2023 (arXiv:2305.08846), with our exact bound for (ε, δ), proved in
docs/proofs/audit.md: that of their Corollary 5.4 is larger where it matters, and too small far below the mean.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import special, stats

from tightrope.audit.findings import Claimed, Verdict, claimed_points, detectable_quantity
from tightrope.errors import InputError
from tightrope.numerics.checks import check_inner_probability, check_integer, check_non_negative, check_probability
from tightrope.numerics.root_finding import bisect_real
from tightrope.randomness.bits import Source, Stream

MAX_EPSILON = 60.0
"""Largest ε that is searched, in nats."""
EPSILON_HALVINGS = 40
TAIL_MARGIN = 1e-9
"""Relative safety margin of p-values, which are binomial tails computed in floats."""
UNDERFLOW_MARGIN = 1e-290
"""Added to probabilities that may be too small for a float."""
MAX_CANARIES = 10_000_000


@dataclass(frozen=True, slots=True)
class OneRun:
    """The result of an audit: of ``guesses`` guesses about ``canaries`` examples, ``correct`` were correct.

    The number of guesses was fixed beforehand. Each canary was in the data with probability ½, independently of all
    else. Neighbors are add-or-remove-one.
    """

    canaries: int
    guesses: int
    correct: int
    confidence: float = 0.99

    def __post_init__(self) -> None:
        check_integer("canaries", self.canaries)
        check_inner_probability("confidence", self.confidence)
        if not self.canaries <= MAX_CANARIES:
            raise InputError("canaries", self.canaries, f"at most {MAX_CANARIES}")
        if not check_integer("guesses", self.guesses) <= self.canaries:
            raise InputError("guesses", self.guesses, f"at most the number of canaries, {self.canaries}")
        if not check_integer("correct", self.correct, at_least=0) <= self.guesses:
            raise InputError("correct", self.correct, "at most all guesses")

    def p_value(self, epsilon: float, delta: float) -> float:
        """Return an upper bound on the probability of at least this many correct guesses in any (ε, δ)-private run.

        The minimum of 1 and f(v) (1 + mδ (1 − f(v)) / (v P(B = v))), for v correct guesses out of r and m canaries,
        with B ~ Binomial(r, e^ε/(1+e^ε)) and f(v) = P(B ≥ v). Some attack attains it. At δ = 0 it is the theorem of
        the paper.
        """
        return self._tail_probability(check_non_negative("epsilon", epsilon), check_probability("delta", delta))

    def epsilon(self, delta: float) -> float:
        """Return a lower bound on the ε at a δ that was fixed beforehand."""
        return self._proven_epsilon(check_probability("delta", delta), 1 - self.confidence)

    def delta(self, epsilon: float) -> float:
        """Return a lower bound on the δ at an ε ≥ 0 that was fixed beforehand."""
        return self._proven_delta(check_non_negative("epsilon", epsilon), 1 - self.confidence)

    def against(self, claim: Claimed) -> Verdict:
        """Return whether the claim, which must be fixed beforehand, is refuted.

        Each of its k points is tested with failure probability (1 − ``confidence``)/k.

        ``least_detectable`` is the least detectable ε of randomized response, one report per canary.
        """
        points = claimed_points(claim)
        failure = (1 - self.confidence) / len(points)
        epsilon, delta = max(points, key=lambda point: self._proven_delta(point[0], failure) - point[1])
        proven = self._proven_delta(epsilon, failure)
        seen = {} if proven > delta else {"randomized response": self._detectable_epsilon(*points[0], failure)}
        proven_epsilon = self._proven_epsilon(delta, failure)
        quantity = detectable_quantity(points)
        return Verdict(proven > delta, self.confidence, epsilon, delta, proven_epsilon, proven, seen, quantity)

    def _tail_bound(self, epsilon: float) -> tuple[float, float]:
        """Return f(v), and the slope of the p-value in mδ."""
        if self.correct == 0:
            return 1.0, 0.0
        accuracy = special.expit(epsilon)
        tail = float(stats.binom.sf(self.correct - 1, self.guesses, accuracy)) * (1 + TAIL_MARGIN) + UNDERFLOW_MARGIN
        mass = float(stats.binom.pmf(self.correct, self.guesses, accuracy)) * (1 - TAIL_MARGIN) + UNDERFLOW_MARGIN
        return min(1.0, tail), max(0.0, 1 - tail) * tail / (self.correct * mass)

    def _tail_probability(self, epsilon: float, delta: float) -> float:
        tail, slope = self._tail_bound(epsilon)
        return min(1.0, tail + self.canaries * delta * slope)

    def _proven_epsilon(self, delta: float, failure: float) -> float:
        """Return the largest refuted ε, rounded down; 0 if none is. Every smaller ε is refuted, too."""

        def is_refuted(epsilon: float) -> bool:
            return self._tail_probability(epsilon, delta) < failure

        return bisect_real(is_refuted, MAX_EPSILON, 0.0, side="passes", halvings=EPSILON_HALVINGS)

    def _proven_delta(self, epsilon: float, failure: float) -> float:
        tail, slope = self._tail_bound(epsilon)
        if not tail < failure:
            return 0.0
        slope_in_delta = self.canaries * slope
        return min(1.0, (failure - tail) * (1 - TAIL_MARGIN) / slope_in_delta) if slope_in_delta > 0 else 1.0

    def _detectable_epsilon(self, epsilon: float, delta: float, failure: float) -> float:
        """Return the least ε (total variation if ``epsilon`` is 0) whose median number of correct guesses refutes."""

        def is_undetected(size: float) -> bool:
            median = int(stats.binom.isf(0.5, self.guesses, special.expit(size)))
            return OneRun(self.canaries, self.guesses, median)._proven_delta(epsilon, failure) <= delta

        if is_undetected(MAX_EPSILON):
            return math.inf
        size = bisect_real(is_undetected, MAX_EPSILON, epsilon, side="fails", halvings=EPSILON_HALVINGS)
        return math.tanh(size / 2) if epsilon == 0 else size


def one_run(
    scores: ArrayLike,
    included: ArrayLike,
    *,
    guesses: int,
    confidence: float = 0.99,
    randomness: Source | None = None,
) -> OneRun:
    """Guess that the canaries with the highest scores were included and those with the lowest were not.

    Between equal scores the choice is random, because their order may reveal which canaries were included.

    ``scores``: one number per canary, higher if it seems to have been in the data; ``included``: whether it was.
    ``guesses`` is the number of guesses, half of them each way; fix it before looking at ``included``. ``confidence``
    applies to each bound separately. Raises ``InputError`` for samples of unequal length, NaN, and more guesses than
    canaries.

    >>> found = one_run([3, 2, 1, 0] * 50, [True, True, False, False] * 50, guesses=100)
    >>> found.correct, found.epsilon(0.0) > 3
    (100, True)
    """
    try:
        values, truth = np.asarray(scores, dtype=np.float64), np.asarray(included)
    except (TypeError, ValueError):
        raise InputError.from_text("scores", "expected a list of numbers, one per canary") from None
    if values.ndim != 1 or values.shape != truth.shape or np.isnan(values).any():
        raise InputError("scores", f"shape {values.shape}", "one number, not NaN, for each entry of included")
    if not np.isin(truth, (0, 1)).all():
        raise InputError("included", "other values", "True or False, or 1 and 0")
    check_integer("guesses", guesses)
    order = np.lexsort(((randomness or Stream()).random_words(len(values)), -values))
    guessed_in, guessed_out = order[: (guesses + 1) // 2], order[len(order) - guesses // 2 :]
    correct = int(truth[guessed_in].astype(bool).sum()) + int((~truth[guessed_out].astype(bool)).sum())
    return OneRun(len(values), guesses, min(correct, guesses), confidence)
