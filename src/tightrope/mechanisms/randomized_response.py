"""Randomized response: report the true category or another one, with exact integer odds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tightrope.accounting.bounds import TrueValueOf
from tightrope.accounting.distributions.atoms import Atoms
from tightrope.accounting.neighbors import Neighbors
from tightrope.accounting.privacy_loss import PrivacyLoss
from tightrope.errors import InputError
from tightrope.mechanisms.discrete.integer_mechanism import count_entries
from tightrope.mechanisms.discrete.integer_tables import PRIVATE_SIDE
from tightrope.mechanisms.discrete.integer_weights import LARGEST_STEP, ONE, fixed_point_exponential
from tightrope.mechanisms.discrete.table_loss import snap_losses
from tightrope.mechanisms.mechanism import Mechanism
from tightrope.numerics.checks import check_inner_probability, check_integer, check_positive
from tightrope.randomness.alias_sampler import TOTAL, AliasSampler
from tightrope.randomness.bits import Source, Stream
from tightrope.randomness.integers import uniform_below

MOST_CATEGORIES = 1 << 31


@dataclass(frozen=True, slots=True)
class RandomizedResponse(Mechanism):
    """The true category has weight ``keep``, each of the k − 1 others ``other``: keep + (k − 1) other = 2¹²⁸.

    The noise is an offset: the report is (category + X) mod k with X in 0..k − 1. Its error is 1 if the report differs
    from the truth, else 0.
    """

    epsilon: float
    k: int
    keep: int
    other: int
    step: float

    @property
    def loss_atoms(self) -> Atoms:
        """Losses +ε, 0, −ε with masses keep, (k − 2) other, other; from the integer weights."""
        loss = np.log1p(np.array([(self.keep - self.other) / self.other]))
        (snapped,), rounding = snap_losses(loss, (self.step,))
        weights = np.array([self.other / TOTAL, (self.k - 2) * self.other / TOTAL, self.keep / TOTAL])
        return Atoms.merge_losses(np.array([-snapped, 0.0, snapped]), weights, rounding_error_bound=rounding)

    @property
    def loss(self) -> PrivacyLoss:
        """Privacy loss if one person changes category: neighbors are "local"."""
        atoms = self.loss_atoms
        return PrivacyLoss.from_distribution(
            atoms, reverse=atoms, neighbors=Neighbors.LOCAL, true_value_of=TrueValueOf.MECHANISMS
        )

    @property
    def mean_absolute_error(self) -> float:
        """P(report ≠ truth) = (k − 1) / (e^ε + k − 1)."""
        return (TOTAL - self.keep) / TOTAL

    @property
    def mean_squared_error(self) -> float:
        """P(report ≠ truth): an error is 0 or 1."""
        return self.mean_absolute_error

    @property
    def worst_error(self) -> float:
        """The largest error, 1: every report can differ from the truth."""
        return 1.0

    def quantile(self, p: float) -> int:
        """Return the smallest offset x with P(X ≤ x) ≥ p."""
        needed = Fraction(check_inner_probability("p", p)) * TOTAL - self.keep
        return max(0, math.ceil(needed / self.other))

    def half_width(self, confidence: float) -> int:
        """Return 0 if the report is true with that probability, else 1."""
        return int(self.quantile(confidence) > 0)

    def sample(self, size: int, randomness: Source | None = None) -> NDArray[np.int64]:
        """Return ``size`` independent offsets, shape [size]."""
        randomness = randomness or Stream()
        offsets = AliasSampler.from_weights((self.keep, TOTAL - self.keep)).draw_outcomes(
            check_integer("size", size, at_least=0), randomness
        )
        changed = np.flatnonzero(offsets)
        offsets[changed] += uniform_below(self.k - 1, len(changed), randomness)
        return offsets

    def release(self, value: Any, randomness: Source | None = None) -> Any:
        """Return the report for a category in 0..k − 1, or for an array of them. Raises ``InputError`` otherwise."""
        size = count_entries(value)
        categories = np.asarray(value)
        if size and not 0 <= int(categories.min()) <= int(categories.max()) < self.k:
            raise InputError("value", value, f"categories in 0..{self.k - 1}", "number the categories from 0")
        offsets = self.sample(size, randomness).reshape(categories.shape)
        reports = (categories.astype(np.int64) + offsets) % self.k
        return reports if isinstance(value, np.ndarray) else int(reports)


def randomized_response(*, epsilon: float, k: int = 2) -> RandomizedResponse:
    """Return k-ary randomized response: the truth with probability e^ε / (e^ε + k − 1), else any other category.

    Pure ε-LDP; the weight of each other category is rounded up and ε (1 − 2⁻⁴⁸) is built, so that the certified ε,
    rounding included, is at most the requested one. ε above 40 is treated as 40. Raises ``InputError`` unless ε > 0 and
    2 ≤ k ≤ 2³¹.

    >>> survey = randomized_response(epsilon=1.0986122886681098)
    >>> round(survey.mean_absolute_error, 12), round(survey.loss.delta(1.0986122886681098), 15)
    (0.25, 0.0)
    """
    epsilon = check_positive("epsilon", epsilon)
    k = check_integer("k", k, at_least=2, remedy="k is the number of categories")
    if not k <= MOST_CATEGORIES:
        raise InputError("k", k, "at most 2^31", "hash the categories into fewer")
    step = min(epsilon, LARGEST_STEP) * PRIVATE_SIDE
    decay = fixed_point_exponential(Fraction(step)) + 1
    other = -(-TOTAL * decay // (ONE + (k - 1) * decay))
    return RandomizedResponse(epsilon, k, TOTAL - (k - 1) * other, other, step)
