"""One bit a person for a mean (Duchi, Jordan, Wainwright 2018): round to an end at random, then randomized response.

A cap on the total variation is kept by silence (GI Thm 7), which costs fewer people than a smaller ε.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tightrope.channels import SymmetricChannel
from tightrope.local.mechanisms.means import MeanOracle
from tightrope.local.mechanisms.response import Response, k_randomized_response, response_with_erasure
from tightrope.local.parts.estimates import Shares, Tally, tail_interval
from tightrope.local.parts.losses import WORD, Change, checked_epsilon, favored_weight, join_changes
from tightrope.local.parts.values import check_bounds as checked_between
from tightrope.local.parts.values import check_categories, check_reals
from tightrope.mechanisms.discrete.integer_weights import LARGEST_STEP
from tightrope.numerics.arrays import Floats
from tightrope.randomness.bits import Source, Stream
from tightrope.randomness.integers import uniform_below


@dataclass(frozen=True, slots=True)
class OneBit(MeanOracle):
    """Bit 1 for the upper end, 0 for the lower; the bit goes through ``response``, which may stay silent (2)."""

    epsilon: float
    lower: float
    upper: float
    response: Response

    @property
    def change_probabilities(self) -> Change:
        return self.response.change_probabilities

    @property
    def channel(self) -> SymmetricChannel:
        """Inputs are the two ends; the row of a number between them is the mixture with its mean."""
        return self.response.channel

    @property
    def report_count(self) -> int:
        return self.response.report_count

    def perturb(self, values: ArrayLike, randomness: Source | None = None) -> NDArray[Any]:
        """Bits, or 2 for silence, shape [n]."""
        randomness = randomness or Stream()
        return self.response.perturb(self.randomized_grid_indices(values, 1, randomness), randomness)

    def decode_reports(self, reports: ArrayLike) -> Floats:
        """The two numbers beyond the ends that bits stand for; silence stands for the middle."""
        beyond = 1 / (2 * (self.response.true_support_probability - self.response.false_support_probability))
        places = [Fraction(1, 2) - beyond, Fraction(1, 2) + beyond, Fraction(1, 2)]
        return np.asarray(
            self.grid_values(np.array(list(map(float, places))), 1)[
                check_categories("reports", reports, self.report_count)
            ]
        )

    def _variance_at(self, value: float) -> float:
        """(width / 2)² (a / (p − q)² − y²), a the chance of an answer, y the value's place in [−1, 1]."""
        slope, answered = (
            float(self.response.true_support_probability - self.response.false_support_probability),
            float(self.response.answer_probability),
        )
        half = (self.upper - self.lower) / 2
        return answered * (half / slope) ** 2 - (value - self.lower - half) ** 2

    def estimate_tally(self, tally: Tally, *, confidence: float = 0.95) -> Shares:
        """The mean, without bias, with Clopper and Pearson's interval for the chance of a 1; each of shape [].

        Bits of people from a population are binomial, for every population: no approximation, few reports or
        many, at the ends as in the middle. With silence as a third report the interval is the same as for other
        mechanisms. Raises ``InputError`` for fewer than two reports.
        """
        if self.response.silence:
            return super(OneBit, self).estimate_tally(tally, confidence=confidence)
        self.check_tally(tally)
        ones, q, slope = (
            int(tally.counts[1]),
            self.response.false_support_probability,
            self.response.true_support_probability - self.response.false_support_probability,
        )
        low, high = tail_interval(np.array([ones]), tally.people, confidence, 1)
        share = float((Fraction(ones, tally.people) - q) / slope)
        ends = ((float(low[0]) - float(q)) / float(slope), (float(high[0]) - float(q)) / float(slope))
        value, lower, upper = self.grid_values(np.array([share, min(ends[0], share), max(ends[1], share)]), 1)
        return Shares(np.asarray(value), np.asarray(lower), np.asarray(upper), tally.people, confidence)


def duchi(epsilon: float, *, bounds: tuple[float, float] = (-1.0, 1.0), total_variation: float | None = None) -> OneBit:
    """The mean of numbers in ``bounds`` from one bit a person, ε-LDP and, where asked for, of total variation η.

    Variance ((e^ε + 1) / (e^ε − 1))² − x² for x in [−1, 1]: the least possible for small ε. A total variation is kept
    by silence: variance 1 / (η tanh(ε/2)) − x², where a smaller ε would need 1 / η² − x². An η of tanh(ε/2) or more is
    no constraint. Raises ``InputError`` unless ε > 0 is finite, lower < upper and 0 < η ≤ 1.

    >>> mechanism = duchi(1.0)
    >>> round(mechanism.variance_at(0.0), 9), sorted(set(mechanism.perturb([0.3] * 100).tolist()))
    (4.682694377, [0, 1])
    >>> round(duchi(1.0, total_variation=0.1).variance_at(0.0), 6)
    21.639534
    """
    ends = checked_between(bounds)
    if total_variation is None:
        return OneBit(checked_epsilon(epsilon), *ends, k_randomized_response(epsilon, 2))
    return OneBit(checked_epsilon(epsilon), *ends, response_with_erasure(epsilon, total_variation))


# The piecewise mechanism for a mean (Wang et al. 2019): a number near the own one, more often than one far from it.

WINDOW_STEPS = 1 << 16
"""Places of a window, less one: values are rounded at random to 1 / 2¹⁶ of their range."""


@dataclass(frozen=True, slots=True)
class Window(MeanOracle):
    """A window of ``length`` cells begins at one of 0..2¹⁶; with chance inside / 2⁶⁴ the report is a cell of it.

    There are 2¹⁶ + length cells; inside and outside the window they are uniform. The paper's interval is the case of
    infinitely many cells.
    """

    epsilon: float
    lower: float
    upper: float
    length: int
    inside: int

    @property
    def window_probability(self) -> Fraction:
        """P(the report is in the window)."""
        return Fraction(self.inside, WORD)

    @property
    def change_probabilities(self) -> Change:
        """Windows at the two ends do not meet, and windows that meet change less."""
        return self.window_probability, (1 - self.window_probability) * self.length / WINDOW_STEPS

    @property
    def report_count(self) -> int:
        return WINDOW_STEPS + self.length

    def perturb(self, values: ArrayLike, randomness: Source | None = None) -> NDArray[Any]:
        """Cells, shape [n]."""
        randomness = randomness or Stream()
        start = self.randomized_grid_indices(values, WINDOW_STEPS, randomness)
        people = len(start)
        near, far = uniform_below(self.length, people, randomness), uniform_below(WINDOW_STEPS, people, randomness)
        is_inside = randomness.random_words(people) < np.uint64(self.inside)
        outside = far + self.length * (far >= start)
        return np.where(is_inside, start + near, outside).astype(np.uint32)

    def decode_reports(self, reports: ArrayLike) -> Floats:
        """The place whose reports have this cell on average, as a number."""
        cells = check_categories("reports", reports, self.report_count)
        base, slope = (float(number) for number in self._cell_mean_line())
        return self.grid_values(np.asarray((cells - base) / slope, dtype=np.float64), WINDOW_STEPS)

    def _cell_mean_line(self) -> tuple[Fraction, Fraction]:
        """E[cell] = base + slope · start: the window's mean, and the mean of the other cells by subtraction."""
        rest, length, cells = 1 - self.window_probability, self.length, self.report_count
        triangle = Fraction(length * (length - 1), 2)
        all_cells = Fraction(cells * (cells - 1), 2)
        base = self.window_probability * triangle / length + rest * (all_cells - triangle) / WINDOW_STEPS
        return base, self.window_probability - rest * length / WINDOW_STEPS

    def _variance_at(self, value: float) -> float:
        """Of the decoded report, the rounding to places included."""
        exact = Fraction(value - self.lower) / Fraction(self.upper - self.lower) * WINDOW_STEPS
        first = min(int(exact), WINDOW_STEPS - 1)
        share = exact - first
        square = (1 - share) * self._cell_square_mean(first) + share * self._cell_square_mean(first + 1)
        base, slope = self._cell_mean_line()
        spread = (square - (base + slope * exact) ** 2) / slope**2
        return float(spread) * ((self.upper - self.lower) / WINDOW_STEPS) ** 2

    def _cell_square_mean(self, start: int) -> Fraction:
        """E[cell²] for a window that begins at ``start``."""
        window = _sum_of_squares(start + self.length) - _sum_of_squares(start)
        rest = _sum_of_squares(self.report_count) - window
        return self.window_probability * window / self.length + (1 - self.window_probability) * rest / WINDOW_STEPS


def _sum_of_squares(count: int) -> Fraction:
    """0² + 1² + … + (count − 1)²."""
    return Fraction((count - 1) * count * (2 * count - 1), 6)


def piecewise(epsilon: float, *, bounds: tuple[float, float] = (-1.0, 1.0)) -> Window:
    """The mean of numbers in ``bounds``, ε-LDP, by the piecewise mechanism in whole numbers.

    The window has e^{−ε/2} times as many cells as the rest, which makes the worst variance least. Better than one bit
    above ε ≈ 1.3. Raises ``InputError`` unless ε > 0 is finite and lower < upper.

    >>> mechanism = piecewise(2.0)
    >>> round(mechanism.worst_variance, 4), round(mechanism.variance_at(0.0), 4)
    (1.2276, 0.6456)
    """
    epsilon, ends = checked_epsilon(epsilon), checked_between(bounds)
    length = max(1, round(WINDOW_STEPS * math.exp(-min(epsilon, LARGEST_STEP) / 2)))
    return Window(epsilon, *ends, length, favored_weight(epsilon, Fraction(WINDOW_STEPS, length)))


# The hybrid mechanism for a mean (Wang et al. 2019): a coin that everybody sees chooses one bit or the window.

TURN = 0.61
"""The ε up to which one bit alone is best (the paper's ε*, rounded; it concerns variance only)."""


@dataclass(frozen=True, slots=True)
class Mixture(MeanOracle):
    """With chance weight / 2⁶⁴ a cell of ``window``, else a bit of ``bit``, numbered after the cells."""

    epsilon: float
    bit: OneBit
    window: Window
    weight: int

    @property
    def lower(self) -> float:  # type: ignore[override]
        """The lower end of both."""
        return self.bit.lower

    @property
    def upper(self) -> float:  # type: ignore[override]
        """The upper end of both."""
        return self.bit.upper

    @property
    def cell_probability(self) -> Fraction:
        """P(the report is a cell), for every value."""
        return Fraction(self.weight, WORD)

    @property
    def change_probabilities(self) -> Change:
        """Both kinds change most between the same two values."""
        return join_changes(
            (self.cell_probability, self.window.change_probabilities),
            (1 - self.cell_probability, self.bit.change_probabilities),
        )

    @property
    def report_count(self) -> int:
        return self.window.report_count + 2

    def perturb(self, values: ArrayLike, randomness: Source | None = None) -> NDArray[Any]:
        """Cells, or two more for the bits, shape [n]."""
        numbers, randomness = check_reals("values", values, self.lower, self.upper), randomness or Stream()
        is_cell = randomness.random_words(len(numbers)) < np.uint64(self.weight)
        out = np.empty(len(numbers), dtype=np.uint32)
        out[is_cell] = self.window.perturb(numbers[is_cell], randomness)
        out[~is_cell] = self.bit.perturb(numbers[~is_cell], randomness) + np.uint32(self.window.report_count)
        return out

    def decode_reports(self, reports: ArrayLike) -> Floats:
        """Each kind of report as it is decoded."""
        heard, first = check_categories("reports", reports, self.report_count), self.window.report_count
        out = np.empty(len(heard))
        is_cell = heard < first
        out[is_cell] = self.window.decode_reports(heard[is_cell])
        out[~is_cell] = self.bit.decode_reports((heard[~is_cell] - first).astype(np.uint8))
        return out

    def _variance_at(self, value: float) -> float:
        """Both have the same mean: variances are mixed."""
        share = float(self.cell_probability)
        return share * self.window.variance_at(value) + (1 - share) * self.bit.variance_at(value)


def hybrid(epsilon: float, *, bounds: tuple[float, float] = (-1.0, 1.0)) -> Mixture:
    """The mean of numbers in ``bounds``, ε-LDP: cells with chance 1 − e^{−ε/2} above ε = 0.61, else one bit.

    Its worst variance is at most the variance of ``duchi`` and ``piecewise`` (Wang et al. 2019).
    Raises ``InputError`` unless ε > 0 is finite and lower < upper.

    >>> mechanism = hybrid(2.0)
    >>> mechanism.worst_variance < min(piecewise(2.0).worst_variance, duchi(2.0).worst_variance)
    True
    """
    epsilon = checked_epsilon(epsilon)
    share = -math.expm1(-epsilon / 2) if epsilon > TURN else 0.0
    weight = min(int(share * WORD), WORD - 1)
    return Mixture(epsilon, duchi(epsilon, bounds=bounds), piecewise(epsilon, bounds=bounds), weight)
