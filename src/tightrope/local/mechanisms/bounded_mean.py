"""Mechanisms for the mean of bounded numbers: one bit, the piecewise mechanism, and their hybrid.

``duchi`` rounds a number to an end at random, then uses randomized response (Duchi, Jordan, Wainwright 2018). A limit
on the total variation is met by silent reports (GI Thm 7), which needs fewer people than a smaller ε.
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
from tightrope.local.parts.losses import WORD, Change, checked_epsilon, favored_weight, join_report_changes
from tightrope.local.parts.values import check_bounds, check_categories, check_reals
from tightrope.mechanisms.discrete.integer_weights import LARGEST_STEP
from tightrope.numerics.arrays import Floats
from tightrope.randomness.bits import Source, Stream
from tightrope.randomness.integers import uniform_below


@dataclass(frozen=True, slots=True)
class OneBit(MeanOracle):
    """A number is rounded at random to the upper end (bit 1) or the lower (bit 0); ``response`` randomizes the bit.

    Report 2 is silence.
    """

    epsilon: float
    lower: float
    upper: float
    response: Response

    @property
    def report_change_probabilities(self) -> Change:
        return self.response.report_change_probabilities

    @property
    def channel(self) -> SymmetricChannel:
        """The channel of the two ends; the row of a number between them is the mixture with its mean."""
        return self.response.channel

    @property
    def possible_report_count(self) -> int:
        return self.response.possible_report_count

    def perturb(self, values: ArrayLike, randomness: Source | None = None) -> NDArray[Any]:
        """Return bits, or 2 for silence, shape [n]."""
        randomness = randomness or Stream()
        return self.response.perturb(self.randomized_grid_indices(values, 1, randomness), randomness)

    def decode_reports(self, reports: ArrayLike) -> Floats:
        """Return the number that each bit stands for, beyond the ends; silence stands for the middle."""
        beyond = 1 / (2 * (self.response.true_support_probability - self.response.false_support_probability))
        positions = [Fraction(1, 2) - beyond, Fraction(1, 2) + beyond, Fraction(1, 2)]
        decoded = self.grid_values(np.array(list(map(float, positions))), 1)
        return np.asarray(decoded[check_categories("reports", reports, self.possible_report_count)])

    def _variance_at(self, value: float) -> float:
        """Return (width / 2)² (a / (p − q)² − y²), a the probability of an answer, y the value scaled to [−1, 1]."""
        slope = float(self.response.true_support_probability - self.response.false_support_probability)
        answer_probability = float(self.response.answer_probability)
        half = (self.upper - self.lower) / 2
        return answer_probability * (half / slope) ** 2 - (value - self.lower - half) ** 2

    def estimate_tally(self, tally: Tally, *, confidence: float = 0.95) -> Shares:
        """Return the unbiased mean with Clopper and Pearson's interval for the probability of a 1; each of shape [].

        The interval is exact, since bits of people from any population are binomial. With silence as a third report
        the interval is that of other mechanisms. Raises ``InputError`` for fewer than two reports.
        """
        if self.response.silence:
            return super(OneBit, self).estimate_tally(tally, confidence=confidence)
        self.check_tally(tally)
        ones, q = int(tally.counts[1]), self.response.false_support_probability
        slope = self.response.true_support_probability - q
        low, high = tail_interval(np.array([ones]), tally.people, confidence, 1)
        share = float((Fraction(ones, tally.people) - q) / slope)
        ends = ((float(low[0]) - float(q)) / float(slope), (float(high[0]) - float(q)) / float(slope))
        value, lower, upper = self.grid_values(np.array([share, min(ends[0], share), max(ends[1], share)]), 1)
        return Shares(np.asarray(value), np.asarray(lower), np.asarray(upper), tally.people, confidence)


def duchi(epsilon: float, *, bounds: tuple[float, float] = (-1.0, 1.0), total_variation: float | None = None) -> OneBit:
    """Return a mechanism for the mean of numbers in ``bounds`` from one bit a person, ε-LDP, with total variation ≤ η.

    Variance ((e^ε + 1) / (e^ε − 1))² − x² for x in [−1, 1]: the least possible for small ε. A ``total_variation`` η is
    met by silent reports: variance 1 / (η tanh(ε/2)) − x², where a smaller ε would need 1 / η² − x². An η of tanh(ε/2)
    or more is no constraint. Raises ``InputError`` unless ε > 0 is finite, lower < upper and 0 < η ≤ 1.

    >>> mechanism = duchi(1.0)
    >>> round(mechanism.variance_at(0.0), 9), sorted(set(mechanism.perturb([0.3] * 100).tolist()))
    (4.682694377, [0, 1])
    >>> round(duchi(1.0, total_variation=0.1).variance_at(0.0), 6)
    21.639534
    """
    ends = check_bounds(bounds)
    if total_variation is None:
        return OneBit(checked_epsilon(epsilon), *ends, k_randomized_response(epsilon, 2))
    return OneBit(checked_epsilon(epsilon), *ends, response_with_erasure(epsilon, total_variation))


WINDOW_STEPS = 1 << 16
"""Number of grid steps: values are rounded at random to multiples of 1 / 2¹⁶ of their range."""


@dataclass(frozen=True, slots=True)
class Window(MeanOracle):
    """The piecewise mechanism on cells (Wang et al. 2019): a report is more often near the person's number.

    A window of ``length`` cells begins at the number's grid point, 0..2¹⁶. With probability inside / 2⁶⁴ the report is
    a uniform cell of the window, otherwise a uniform one of the other cells; there are 2¹⁶ + length cells. The interval
    of the paper is the limit of infinitely many cells.
    """

    epsilon: float
    lower: float
    upper: float
    length: int
    inside: int

    @property
    def window_probability(self) -> Fraction:
        """The probability that the report is in the window."""
        return Fraction(self.inside, WORD)

    @property
    def report_change_probabilities(self) -> Change:
        """The change between the two ends, whose windows are disjoint; overlapping windows change less."""
        return self.window_probability, (1 - self.window_probability) * self.length / WINDOW_STEPS

    @property
    def possible_report_count(self) -> int:
        return WINDOW_STEPS + self.length

    def perturb(self, values: ArrayLike, randomness: Source | None = None) -> NDArray[Any]:
        """Return cells, shape [n]."""
        randomness = randomness or Stream()
        start = self.randomized_grid_indices(values, WINDOW_STEPS, randomness)
        people = len(start)
        window_cell = start + uniform_below(self.length, people, randomness)
        other_cell = uniform_below(WINDOW_STEPS, people, randomness)
        other_cell = other_cell + self.length * (other_cell >= start)
        is_inside = randomness.random_words(people) < np.uint64(self.inside)
        return np.where(is_inside, window_cell, other_cell).astype(np.uint32)

    def decode_reports(self, reports: ArrayLike) -> Floats:
        """Return the numbers whose reports have these cells on average, shape [n]."""
        cells = check_categories("reports", reports, self.possible_report_count)
        base, slope = (float(number) for number in self._cell_mean_line())
        return self.grid_values(np.asarray((cells - base) / slope, dtype=np.float64), WINDOW_STEPS)

    def _cell_mean_line(self) -> tuple[Fraction, Fraction]:
        """Return (base, slope) with E[cell] = base + slope · start."""
        rest, length, cells = 1 - self.window_probability, self.length, self.possible_report_count
        triangle = Fraction(length * (length - 1), 2)
        all_cells = Fraction(cells * (cells - 1), 2)
        base = self.window_probability * triangle / length + rest * (all_cells - triangle) / WINDOW_STEPS
        return base, self.window_probability - rest * length / WINDOW_STEPS

    def _variance_at(self, value: float) -> float:
        """Return the variance of the decoded report, including the rounding to grid points."""
        exact = Fraction(value - self.lower) / Fraction(self.upper - self.lower) * WINDOW_STEPS
        first = min(int(exact), WINDOW_STEPS - 1)
        part = exact - first
        square = (1 - part) * self._cell_square_mean(first) + part * self._cell_square_mean(first + 1)
        base, slope = self._cell_mean_line()
        spread = (square - (base + slope * exact) ** 2) / slope**2
        return float(spread) * ((self.upper - self.lower) / WINDOW_STEPS) ** 2

    def _cell_square_mean(self, start: int) -> Fraction:
        """Return E[cell²] for a window that begins at ``start``."""
        window = _sum_of_squares(start + self.length) - _sum_of_squares(start)
        rest = _sum_of_squares(self.possible_report_count) - window
        return self.window_probability * window / self.length + (1 - self.window_probability) * rest / WINDOW_STEPS


def _sum_of_squares(count: int) -> Fraction:
    """Return 0² + 1² + … + (count − 1)²."""
    return Fraction((count - 1) * count * (2 * count - 1), 6)


def piecewise(epsilon: float, *, bounds: tuple[float, float] = (-1.0, 1.0)) -> Window:
    """Return the piecewise mechanism on integers for the mean of numbers in ``bounds``, ε-LDP.

    The window has e^{−ε/2} times as many cells as the rest, which minimizes the worst variance. It is better than one
    bit above ε ≈ 1.3. Raises ``InputError`` unless ε > 0 is finite and lower < upper.

    >>> mechanism = piecewise(2.0)
    >>> round(mechanism.worst_variance, 4), round(mechanism.variance_at(0.0), 4)
    (1.2276, 0.6456)
    """
    epsilon, ends = checked_epsilon(epsilon), check_bounds(bounds)
    length = max(1, round(WINDOW_STEPS * math.exp(-min(epsilon, LARGEST_STEP) / 2)))
    return Window(epsilon, *ends, length, favored_weight(epsilon, Fraction(WINDOW_STEPS, length)))


LARGEST_ONE_BIT_EPSILON = 0.61
"""The ε up to which one bit alone is best (the paper's ε*, rounded; it concerns variance only)."""


@dataclass(frozen=True, slots=True)
class Mixture(MeanOracle):
    """The hybrid mechanism (Wang et al. 2019): a cell of ``window`` with probability weight / 2⁶⁴, else a bit.

    Bits are numbered after the cells, so the report shows which of the two was used.
    """

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
        """The probability that the report is a cell; the same for every value."""
        return Fraction(self.weight, WORD)

    @property
    def report_change_probabilities(self) -> Change:
        """The change between the two ends, which is the largest for both kinds of reports."""
        return join_report_changes(
            (self.cell_probability, self.window.report_change_probabilities),
            (1 - self.cell_probability, self.bit.report_change_probabilities),
        )

    @property
    def possible_report_count(self) -> int:
        return self.window.possible_report_count + 2

    def perturb(self, values: ArrayLike, randomness: Source | None = None) -> NDArray[Any]:
        """Return cells, or the two numbers after them for bits, shape [n]."""
        numbers, randomness = check_reals("values", values, self.lower, self.upper), randomness or Stream()
        is_cell = randomness.random_words(len(numbers)) < np.uint64(self.weight)
        out = np.empty(len(numbers), dtype=np.uint32)
        out[is_cell] = self.window.perturb(numbers[is_cell], randomness)
        out[~is_cell] = self.bit.perturb(numbers[~is_cell], randomness) + np.uint32(self.window.possible_report_count)
        return out

    def decode_reports(self, reports: ArrayLike) -> Floats:
        """Return the decoded cells and bits, shape [n]."""
        numbers, first_bit = (
            check_categories("reports", reports, self.possible_report_count),
            self.window.possible_report_count,
        )
        out = np.empty(len(numbers))
        is_cell = numbers < first_bit
        out[is_cell] = self.window.decode_reports(numbers[is_cell])
        out[~is_cell] = self.bit.decode_reports((numbers[~is_cell] - first_bit).astype(np.uint8))
        return out

    def _variance_at(self, value: float) -> float:
        """Return the weighted mean of both variances; both kinds of reports have the same mean."""
        chance = float(self.cell_probability)
        return chance * self.window.variance_at(value) + (1 - chance) * self.bit.variance_at(value)


def hybrid(epsilon: float, *, bounds: tuple[float, float] = (-1.0, 1.0)) -> Mixture:
    """Return a mechanism for the mean, ε-LDP: cells with probability 1 − e^{−ε/2} if ε > 0.61, else one bit.

    Its worst variance is at most the variance of ``duchi`` and ``piecewise`` (Wang et al. 2019).
    Raises ``InputError`` unless ε > 0 is finite and lower < upper.

    >>> mechanism = hybrid(2.0)
    >>> mechanism.worst_variance < min(piecewise(2.0).worst_variance, duchi(2.0).worst_variance)
    True
    """
    epsilon = checked_epsilon(epsilon)
    chance = -math.expm1(-epsilon / 2) if epsilon > LARGEST_ONE_BIT_EPSILON else 0.0
    weight = min(int(chance * WORD), WORD - 1)
    return Mixture(epsilon, duchi(epsilon, bounds=bounds), piecewise(epsilon, bounds=bounds), weight)
