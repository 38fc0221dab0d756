"""Which mechanism answers best: compared by the exact variance of what is really sampled."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tightrope.errors import InputError
from tightrope.local.mechanisms.known import DISTRIBUTION, MEAN, Oracle
from tightrope.local.mechanisms.means import MeanOracle
from tightrope.local.mechanisms.oracle import FrequencyOracle
from tightrope.local.vectors.ball import BallMean
from tightrope.numerics.checks import positive, whole

SMALLEST_ERROR = 1e-100
"""Its square is still a float, and so is that of its inverse."""


@dataclass(frozen=True, slots=True)
class Option:
    """One mechanism for a question: ``variance`` is one person's, ``bits`` a report's size."""

    name: str
    mechanism: Oracle | BallMean
    variance: float
    bits: int

    def error(self, people: int) -> float:
        """Root mean squared error of the estimate from so many people: √(variance / people)."""
        return math.sqrt(self.variance / whole("people", people))

    def people(self, error: float) -> int:
        """The fewest people for which ``error`` is not exceeded; ``InputError`` unless it is in (1e−100, 1e100)."""
        if not SMALLEST_ERROR < positive("error", error) < 1 / SMALLEST_ERROR:
            raise InputError("error", error, "between 1e-100 and 1e100", "values lie in [0, 1] or [-1, 1]")
        return max(1, math.ceil(self.variance / error**2))


def compare(question: str, *, epsilon: float, k: int | None = None) -> list[Option]:
    """All mechanisms for "distribution" (of k categories: mean variance over all of them) or "mean" (of a number in
    [−1, 1]: worst variance), the least variance first, the smaller report first where they are equal.

    Raises ``InputError`` for other questions, a distribution without k or a mean with one, and where a mechanism does.

    >>> [option.name for option in compare("distribution", epsilon=1.0, k=1024)][:2]
    ['subset_selection', 'unary_encoding']
    >>> compare("distribution", epsilon=1.0, k=3)[0].name, compare("mean", epsilon=2.0)[0].name
    ('k_randomized_response', 'hybrid')
    """
    if question == "distribution":
        options = [_of_categories(name, make(epsilon, whole("k", k, 2))) for name, make in DISTRIBUTION.items()]
    elif question == "mean":
        if k is not None:
            raise InputError("k", k, "left out for a mean", "k is the number of categories of a distribution")
        options = [_of_number(name, make(epsilon)) for name, make in MEAN.items()]
    else:
        raise InputError("question", question, "'distribution' or 'mean'")
    return sorted(options, key=lambda option: (option.variance, option.bits))


def best(question: str, *, epsilon: float, k: int | None = None, most_bits: int | None = None) -> Option:
    """The first of ``compare`` whose reports have at most ``most_bits``; raises ``InputError`` where none has.

    >>> best("distribution", epsilon=1.0, k=1024, most_bits=16).name
    'hashing'
    """
    options = compare(question, epsilon=epsilon, k=k)
    fitting = [option for option in options if most_bits is None or option.bits <= whole("most_bits", most_bits)]
    if not fitting:
        fewest = min(option.bits for option in options)
        raise InputError("most_bits", most_bits, f"at least {fewest}", "the smallest report needs so many")
    return fitting[0]


def _of_categories(name: str, mechanism: FrequencyOracle) -> Option:
    return Option(name, mechanism, mechanism.mean_variance, mechanism.report_bits)


def _of_number(name: str, mechanism: MeanOracle) -> Option:
    return Option(name, mechanism, mechanism.worst_variance, mechanism.report_bits)
