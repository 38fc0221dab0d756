"""Randomized response for k categories, with or without silent reports."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tightrope.channels import SymmetricChannel
from tightrope.errors import InputError
from tightrope.local.mechanisms.oracle import FrequencyOracle
from tightrope.local.parts.estimates import Tally
from tightrope.local.parts.kernels import PEOPLE_AT_ONCE, randomize_responses
from tightrope.local.parts.losses import WORD, checked_epsilon, odds_advantage, other_outcome_weight
from tightrope.local.parts.values import Integers, check_categories, check_domain_size, smallest_type
from tightrope.numerics.checks import check_probability
from tightrope.randomness.bits import Source, Stream, Words
from tightrope.randomness.loops import Loop, compiled_loop

MOST_RESPONSE_CATEGORIES = 1 << 31
MOST_COUNTED = 1 << 26
"""Categories of one tally: half a gigabyte of counts."""


@dataclass(frozen=True, slots=True)
class Response(FrequencyOracle):
    """Of 2⁶⁴ words, ``weight`` stand for each other category, ``silence`` for silence, and the rest for the truth.

    A report is a category, or k for silence.
    """

    epsilon: float
    k: int
    weight: int
    silence: int = 0

    @property
    def true_support_probability(self) -> Fraction:
        return Fraction(WORD - self.silence - (self.k - 1) * self.weight, WORD)

    @property
    def false_support_probability(self) -> Fraction:
        return Fraction(self.weight, WORD)

    @property
    def answer_probability(self) -> Fraction:
        return 1 - Fraction(self.silence, WORD)

    @property
    def report_change_probabilities(self) -> tuple[Fraction, Fraction]:
        return self.true_support_probability, self.false_support_probability

    @property
    def channel(self) -> SymmetricChannel:
        """The channel, without a matrix, for any k; silence is the last output.

        >>> round(k_randomized_response(1.0, 4).channel.epsilon, 9)
        1.0
        """
        return SymmetricChannel(
            self.k, float(self.true_support_probability), float(self.false_support_probability), self.silence / WORD
        )

    @property
    def possible_report_count(self) -> int:
        """The number of different reports."""
        return self.k + (self.silence > 0)

    def perturb(self, values: ArrayLike, randomness: Source | None = None) -> NDArray[Any]:
        """Return reports of the smallest unsigned type, shape [n]; k stands for silence.

        Raises ``InputError`` unless the values are integers in 0..k − 1.
        """
        truth, randomness = check_categories("values", values, self.k), randomness or Stream()
        out = np.empty(len(truth), dtype=smallest_type(self.possible_report_count))
        loop = compiled_loop(randomize_responses, len(truth))
        for start in range(0, len(truth), PEOPLE_AT_ONCE):
            self._fill_reports(
                out[start : start + PEOPLE_AT_ONCE], truth[start : start + PEOPLE_AT_ONCE], randomness, loop
            )
        return out

    def _fill_reports(self, out: NDArray[Any], values: Integers, randomness: Source, loop: Loop | None) -> None:
        words = randomness.random_words(len(values))
        if loop is None or not words.flags.writeable:  # read-only words would be compiled for anew
            self._respond_with_numpy(words, values, out)
        else:
            edge = (self.k - 1) * self.weight
            whole = (self.weight, self.k, edge, edge + self.silence)
            weight, k, first, second = (np.uint64(number) for number in whole)
            loop(words, values.astype(np.int64), (weight, 1 / self.weight, k, first, second), out)

    def _respond_with_numpy(self, words: Words, values: Integers, out: NDArray[Any]) -> None:
        """Write the same reports as ``kernels.randomize_responses``, with numpy."""
        edge = (self.k - 1) * self.weight
        steps = words // np.uint64(self.weight)
        moved = values.astype(np.uint64) + np.uint64(1) + np.minimum(steps, np.uint64(self.k))
        moved = np.where(moved >= self.k, moved - np.uint64(self.k), moved)
        quiet = np.where(words < np.uint64(edge + self.silence), np.uint64(self.k), values.astype(np.uint64))
        out[:] = np.where(words < np.uint64(edge), moved, quiet)

    def count_reports(self, reports: ArrayLike) -> NDArray[np.int64]:
        if not self.k <= MOST_COUNTED:
            raise InputError("k", self.k, f"at most {MOST_COUNTED} to count every category", "use local.hashing")
        return super(Response, self).count_reports(reports)

    def tally_of_reports(self, people: int, counts: NDArray[np.int64]) -> Tally:
        """Return the tally: each report supports its own category, and silent reports are not answered."""
        return Tally(people, int(counts[: self.k].sum()), counts[: self.k])


def k_randomized_response(epsilon: float, k: int = 2) -> Response:
    """Return randomized response: the truth with probability e^ε / (e^ε + k − 1), else a uniform other category.

    Pure ε-LDP, certified from the weights out of 2⁶⁴; ε above 40 is taken as 40. It has less variance than
    ``local.unary_encoding`` and ``local.hashing`` for k < 3 e^ε + 2. Raises ``InputError`` unless ε > 0 is finite
    and 2 ≤ k ≤ 2³¹.

    >>> survey = k_randomized_response(1.0, 4)
    >>> reports = survey.perturb([0, 1, 2, 2, 3] * 1000)
    >>> bool(abs(survey.estimate(reports).value[2] - 0.4) < 0.2), round(float(survey.true_support_probability), 6)
    (True, 0.475367)
    """
    epsilon = checked_epsilon(epsilon)
    size = check_domain_size(k, MOST_RESPONSE_CATEGORIES, "hash the categories: local.hashing")
    return Response(epsilon, size, other_outcome_weight(epsilon, size))


def response_with_erasure(epsilon: float, total_variation: float, k: int = 2) -> Response:
    """Return randomized response with silent reports, so that the total variation is at most η (GI Thm 7, theory §5).

    Silence does not depend on the category. It has probability 1 − η (e^ε + k − 1) / (e^ε − 1), rounded up; for k = 2
    that is 1 − η / tanh(ε/2). An η above the largest, (e^ε − 1) / (e^ε + k − 1), adds no constraint.
    Raises ``InputError`` unless ε > 0 is finite and 0 < η ≤ 1.

    >>> careful = response_with_erasure(1.0, 0.2, k=4)
    >>> round(careful.guarantee.total_variation, 9), round(float(careful.answer_probability), 6)
    (0.2, 0.665581)
    """
    plain = k_randomized_response(epsilon, k)
    eta = check_probability("total_variation", total_variation)
    if not eta * WORD >= 1 << 32:
        raise InputError("total_variation", total_variation, "above 2^-32", "with 0 all reports would be silent")
    answers = min(WORD, int(Fraction(eta) / odds_advantage(plain.epsilon, plain.k) * WORD))
    weight = other_outcome_weight(plain.epsilon, plain.k, answers)
    return Response(plain.epsilon, plain.k, weight, WORD - answers)


def binary_with_erasure(epsilon: float, total_variation: float) -> Response:
    """Return the binary mechanism with erasure: a row (ηe^ε, η) / (e^ε − 1), silence 1 − η / tanh(ε/2), and its mirror.

    It attains the total variation that any (ε, 0, η)-private report of one bit can keep (GI Prop. 2, theory §5).
    Raises like ``response_with_erasure``.

    >>> binary_with_erasure(1.0, 0.3).guarantee
    Guarantee(epsilon=0.9999999999999974, delta=0.0, total_variation=0.3)
    """
    return response_with_erasure(epsilon, total_variation)
