"""Differences and ratios of released numbers, with intervals from the joint distribution of their noise.

A comparison is computed from noisy integers that are released anyway, so it needs no budget. Proof of the intervals:
``docs/proofs/intervals.md``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, Self, final

import numpy as np

from tightrope.documents.escaping import escape_control_chars
from tightrope.errors import PlanError, quoted_names, suggest_nearest
from tightrope.numerics.arrays import Floats
from tightrope.queries.intervals import OUTSIDE, TAIL_ROUNDING, NoiseTails, half_width
from tightrope.queries.options import grid_width

if TYPE_CHECKING:
    from tightrope.queries.query import Integers, Noises, Query, Record
    from tightrope.queries.statistics import Noise

Key = tuple[object, ...]

# The noise of one number, as a linear form in the noises of its statistics.


@dataclass(frozen=True, slots=True)
class NoiseWeight:
    """A noise X in a number top / bottom: the top contains ``in_top`` · X, the bottom ``in_bottom`` · X."""

    noise: Noise
    in_top: float
    in_bottom: float = 0.0


@dataclass(frozen=True, slots=True)
class LinearEstimate:
    """A noisy number ``offset`` + top / bottom, where the noises of top and bottom are known; without bottom, top.

    ``allowance`` is the rounding of values to their grid, ``possible`` the range of the number without noise.
    """

    top: float
    weights: tuple[NoiseWeight, ...]
    bottom: float | None = None
    offset: float = 0.0
    allowance: float = 0.0
    possible: tuple[float, float] = (-math.inf, math.inf)

    @property
    def raw_value(self) -> float:
        """The number, which may be outside of the possible range."""
        return self.top if self.bottom is None else self.offset + self.top / self.bottom

    @property
    def value(self) -> float:
        """The number, clamped to the possible range if it is a quotient, as in its own answer."""
        return self.top if self.bottom is None else min(max(self.raw_value, self.possible[0]), self.possible[1])

    @property
    def is_certainly_shown(self) -> bool:
        """Return whether every plausible count of discovered groups is always shown (``Noise.confidence_interval``)."""
        thresholds = (weight.noise.key_threshold for weight in self.weights)
        return all(threshold is None or self.top > 3 * threshold for threshold in thresholds)


@dataclass(frozen=True, slots=True)
class ComparedNumber:
    """A number of one group, with its weight in a comparison: a range of weights, if ``tolerance`` is positive."""

    query: Query
    integers: Integers
    noises: Noises
    key: Key
    weight: float
    tolerance: float = 0.0

    @property
    def estimate(self) -> LinearEstimate | None:
        """The number with its noise; None if it is not a quotient of linear forms, or suppressed."""
        return self.query.linear_estimate(self.integers, self.noises)


# The width of a sum of independent noises: each is rounded up to a lattice, so that probabilities are upper bounds.

CELLS_PER_WIDTH = 1_024
"""Lattice cells per width of the heaviest noise."""
NEGLIGIBLE = 1e-5
"""The part of the error probability for values beyond the lattice of each noise."""
LARGEST_LATTICE = 1 << 21
"""Largest lattice."""
EXACT_CELLS = 1 << 18
"""Largest lattice on which the sums of integer multiples are computed exactly."""
FLOAT_ROUNDING = 1e-13
"""Bound on the error of a probability computed by Fourier transforms."""


@dataclass(frozen=True, slots=True)
class NoiseTerm:
    """A term of at most ``slope`` · X + ``spread`` · |X|, for a symmetric noise X."""

    tails: NoiseTails
    slope: float
    spread: float

    @property
    def size(self) -> float:
        """The largest factor of |X|."""
        return abs(self.slope) + self.spread


@lru_cache(maxsize=4_096)
def sum_half_width(terms: tuple[NoiseTerm, ...], outside: float) -> float:
    """Return a width that the sum of these independent terms exceeds with probability ≤ ``outside``/2; ∞ if unknown.

    The same holds for minus the sum, whose terms are at most −slope · X + spread · |X|: X is symmetric.
    """
    used_terms = [term for term in terms if term.size]
    if not used_terms:
        return 0.0
    beyond = NEGLIGIBLE * outside / 2
    reaches = [term.size * _tail_end(term.tails, beyond) for term in used_terms]
    cell, is_exact = _lattice_cell(used_terms, reaches, outside)
    if not (0 < cell < math.inf and sum(reach / cell for reach in reaches) < LARGEST_LATTICE):
        return math.inf
    lengths = [math.ceil(reach / cell) + 1 for reach in reaches]
    size = 1 << (2 * sum(lengths) + len(lengths)).bit_length()
    transform = np.ones(size // 2 + 1, dtype=complex)
    for term, length in zip(used_terms, lengths, strict=True):
        transform *= np.fft.rfft(_lattice_masses(term, cell, length), size)
    # index − Σ lengths is the sum in cells; the largest values lie at the end
    masses = np.maximum(np.fft.irfft(transform, size)[: 2 * sum(lengths) + 1], 0.0)
    tail = np.concatenate([np.cumsum(masses[::-1])[::-1][1:], [0.0]])
    allowed = outside / 2 * (1 - TAIL_ROUNDING) - len(used_terms) * beyond - FLOAT_ROUNDING
    is_rare = tail[sum(lengths) :] <= allowed
    if not (allowed > 0 and is_rare[-1]):
        return math.inf
    return float(np.argmax(is_rare)) * cell * (1 if is_exact else 1 + 1e-12)


def _lattice_cell(terms: Sequence[NoiseTerm], reaches: Sequence[float], outside: float) -> tuple[float, bool]:
    """Return the cell of the lattice, and whether the terms are exact multiples of it.

    It is the smallest slope if all slopes are integer multiples of it and the lattice is small.
    """
    smallest = min(term.size for term in terms)
    are_multiples = all(term.spread == 0 and (term.size / smallest).is_integer() for term in terms)
    if are_multiples and sum(reaches) / smallest < EXACT_CELLS:
        return smallest, True
    return max(term.size * half_width(term.tails, outside) for term in terms) / CELLS_PER_WIDTH, False


@lru_cache(maxsize=1_024)
def _tail_end(tails: NoiseTails, outside: float) -> float:
    """Return an integer that X exceeds with probability at most ``outside``; it is the end of a short table."""
    return min(half_width(tails, 2 * outside), math.ceil(tails.factor * (len(tails.table) + 1)))


def _lattice_masses(term: NoiseTerm, cell: float, length: int) -> Floats:
    """Return the probabilities of the term rounded up to k cells, k = −length … length; shape [2 length + 1].

    Smaller values are put at the first cell; larger ones are left out.
    """
    slope, spread = abs(term.slope), term.spread  # X is symmetric
    k = np.arange(-length, length + 1, dtype=np.float64)

    def largest_integer(thresholds: Floats, rate: float) -> Floats:
        quotients = thresholds * cell / rate
        is_exact = spread == 0 and (rate / cell).is_integer()
        return np.floor(thresholds / (rate / cell)) if is_exact else np.floor(quotients - np.abs(quotients) * 1e-15)

    # P(slope · X + spread · |X| > k cells), from both signs of X.
    exceeded = np.zeros(len(k))
    is_positive = k >= 0
    exceeded[is_positive] = term.tails.tail_probability(largest_integer(k[is_positive], slope + spread))
    if spread > slope:
        exceeded[is_positive] += term.tails.tail_probability(largest_integer(k[is_positive], spread - slope))
        exceeded[~is_positive] = 1.0
    elif spread == slope:
        exceeded[~is_positive] = 1.0
    else:
        exceeded[~is_positive] = term.tails.tail_probability(largest_integer(k[~is_positive], slope - spread))
    exceeded = np.minimum(exceeded, 1.0)
    masses: Floats = np.concatenate([[1 - exceeded[0]], exceeded[:-1] - exceeded[1:]])
    return np.maximum(masses, 0.0)


# The interval of a weighted sum of numbers.

SEPARATE_PROBABILITY = 0.0025
"""The part of the 5 % for intervals of each number by itself, where the joint distribution may be of no use."""
EVENT_PROBABILITY = 0.002
"""The part of the 5 % for denominators and quotients to be farther off than the limits that are used for them."""


def joint_noise_terms(numbers: Sequence[ComparedNumber]) -> tuple[NoiseTerm, ...] | None:
    """Return terms that bound the error of Σ weight · number; None if the noise is too large for a bound.

    Two numbers of the same group with the same statistic share its noise, whose weights add up. The error of a
    quotient t/n is (Σ (uⱼ − vⱼ t/n) Xⱼ) / (n + Σ vⱼXⱼ). Except with ``EVENT_PROBABILITY``, all denominators and
    quotients are within known limits of the observed ones.
    """
    quotients = sum(number.estimate is not None and number.estimate.bottom is not None for number in numbers)
    shares: dict[tuple[Noise, Key], tuple[float, float]] = {}
    for number in numbers:
        estimate = number.estimate
        if estimate is None or not estimate.is_certainly_shown:
            return None
        weight, tolerance = number.weight, number.tolerance
        largest_weight = abs(weight) + tolerance
        quotient, error, relative = 0.0, 0.0, 0.0
        scale = 1.0
        if estimate.bottom is not None:
            chance = EVENT_PROBABILITY / (2 * quotients)
            top_noise, bottom_noise = (
                _largest_error(estimate.weights, chance, in_bottom=in_bottom) for in_bottom in (False, True)
            )
            if not estimate.bottom > 2 * bottom_noise:
                return None
            quotient = estimate.top / estimate.bottom
            error = (top_noise + abs(quotient) * bottom_noise) / (estimate.bottom - bottom_noise)
            scale = 1 / estimate.bottom
            relative = 1 / (estimate.bottom - 2 * bottom_noise) - scale
        for share in estimate.weights:
            middle = share.in_top - quotient * share.in_bottom
            spread = largest_weight * (abs(middle) * relative + abs(share.in_bottom) * error * (scale + relative))
            slope, total_spread = shares.get((share.noise, number.key), (0.0, 0.0))
            shares[share.noise, number.key] = (
                slope + weight * middle * scale,
                total_spread + spread + tolerance * abs(middle) * scale,
            )
    return tuple(NoiseTerm(noise.noise_tails, *share) for (noise, _), share in shares.items())


def _largest_error(weights: Sequence[NoiseWeight], chance: float, *, in_bottom: bool) -> float:
    """Return a limit of the noise in the top or in the bottom that is exceeded with probability at most ``chance``."""
    scaled = [(abs(weight.in_bottom if in_bottom else weight.in_top), weight.noise) for weight in weights]
    used = [(scale, noise) for scale, noise in scaled if scale]
    return math.fsum(scale * _noise_limit(noise.noise_tails, chance / len(used)) for scale, noise in used)


_noise_limit = lru_cache(maxsize=1_024)(half_width)


@dataclass(frozen=True, slots=True)
class IntervalMethods:
    """The methods of an interval, with their error probabilities; 0: not used. Intervals of both are intersected."""

    joint: float
    separate: float

    @classmethod
    def for_numbers(cls, numbers: Sequence[ComparedNumber]) -> Self:
        """Return the methods, which depend on the questions and their noise only, not on the noisy integers."""
        noises = [noise for number in numbers for noise in number.noises.values()]
        if any(noise.vector.joint_noise for noise in noises) or not all(n.query.has_linear_estimate for n in numbers):
            return cls(0.0, OUTSIDE)
        if all(n.query.is_one_noisy_integer for n in numbers) and not any(noise.key_threshold for noise in noises):
            return cls(OUTSIDE, 0.0)
        return cls(OUTSIDE - SEPARATE_PROBABILITY - EVENT_PROBABILITY, SEPARATE_PROBABILITY)


JOINT_INTERVAL = "The interval is that of the joint distribution of all noises"
SEPARATE_INTERVALS = "wider intervals of the compared numbers, which all hold at once"


def comparison_interval_note(answers: Sequence[NoisyAnswer]) -> str:
    """Return by which method the intervals of a comparison of these answers are computed."""
    numbers = [ComparedNumber(answer.query, {}, answer.noises, (), 1.0) for answer in answers]
    methods = IntervalMethods.for_numbers(numbers)
    if not methods.joint:
        return f"The interval follows from {SEPARATE_INTERVALS}."
    if not methods.separate:
        return f"{JOINT_INTERVAL}."
    return f"{JOINT_INTERVAL}, intersected with the one that follows from {SEPARATE_INTERVALS}."


def weighted_sum_record(numbers: Sequence[ComparedNumber]) -> Record:
    """Return Σ weight · number with its 95 % interval; the value is None if one of the numbers is suppressed."""
    methods, intervals = IntervalMethods.for_numbers(numbers), []
    records = separate_records(numbers, methods.separate or OUTSIDE)
    interval = _joint_interval(numbers, methods.joint) if methods.joint else None
    if interval is not None:
        intervals.append(interval)
    if methods.separate or interval is None:
        intervals.append(_sum_of_intervals(records, [number.weight for number in numbers]))
    lower, upper = _intersect_intervals(intervals)
    values = [record["value"] for record in records]
    if None in values:
        return _record_without_value(lower, upper)
    value = _exact_sum([number.weight * (value or 0) for number, value in zip(numbers, values, strict=True)])
    return {
        "value": value,
        "lower": _finite_or_none(min(lower, value)),
        "upper": _finite_or_none(max(upper, value)),
    }


def _exact_sum(numbers: Sequence[float]) -> float:
    """Return the sum; of integers, an integer."""
    return sum(numbers) if all(isinstance(number, int) for number in numbers) else math.fsum(numbers)


def _joint_interval(numbers: Sequence[ComparedNumber], outside: float) -> tuple[float, float] | None:
    """Return the interval from the joint distribution; None if there is no bound on the noise."""
    terms = joint_noise_terms(numbers)
    width = math.inf if terms is None else sum_half_width(terms, outside)
    if not width < math.inf:
        return None
    pairs = [(number.weight, number.estimate) for number in numbers]
    middle = _exact_sum([weight * estimate.raw_value for weight, estimate in pairs if estimate is not None])
    allowance = math.fsum(abs(weight) * estimate.allowance for weight, estimate in pairs if estimate is not None)
    if isinstance(middle, int) and width.is_integer():
        return middle - int(width), middle + int(width)
    return math.nextafter(middle - width - allowance, -math.inf), math.nextafter(middle + width + allowance, math.inf)


def separate_records(numbers: Sequence[ComparedNumber], outside: float) -> list[Record]:
    """Return each number with an interval; all intervals hold at once except with probability ``outside``."""
    each = outside / len(numbers)
    return [number.query.estimate(number.integers, number.noises, each) for number in numbers]


def _sum_of_intervals(records: Sequence[Record], weights: Sequence[float]) -> tuple[float, float]:
    ends = [[], []]  # type: list[list[float]]
    for record, weight in zip(records, weights, strict=True):
        low, high = _record_ends(record)
        for index, end in enumerate(sorted((weight * low, weight * high))):
            ends[index].append(end)
    return math.nextafter(sum(ends[0]), -math.inf), math.nextafter(sum(ends[1]), math.inf)


def _record_ends(record: Record) -> tuple[float, float]:
    low, high = record["lower"], record["upper"]
    return -math.inf if low is None else low, math.inf if high is None else high


def _intersect_intervals(intervals: Sequence[tuple[float, float]]) -> tuple[float, float]:
    return max(low for low, _ in intervals), min(high for _, high in intervals)


def _record_without_value(lower: float, upper: float) -> Record:
    return {"value": None, "lower": _finite_or_none(lower), "upper": _finite_or_none(upper)}


def _finite_or_none(number: float) -> float | None:
    return number if math.isfinite(number) else None


# The interval of a ratio of two numbers (Fieller): all ratios r for which first − r · second may be zero.

FIRST_STEP, LAST_STEP = 0.1, 4e-3
"""The steps in which ratios are excluded, in radians; the last one relative to the distance from the ratio."""
SMALLEST_STEP = 1e-9


def ratio_record(first: ComparedNumber, second: ComparedNumber) -> Record:
    """Return first / second with its 95 % interval; the value is None if the second number may be zero."""
    both = (first, second)
    methods = IntervalMethods.for_numbers(both)
    records = separate_records(both, methods.separate or OUTSIDE)
    lower, upper = _ratio_interval(both, records, methods)
    is_unbounded = math.inf in (abs(lower), abs(upper))
    if all(number.estimate is not None and number.estimate.possible[0] >= 0 for number in both):
        is_unbounded, lower = is_unbounded or upper < 0, max(lower, 0.0)
        upper = math.inf if upper < 0 else upper  # no possible ratio is plausible: the noise is larger than usual
    values = [record["value"] for record in records]
    if is_unbounded or None in values or not values[1]:
        return _record_without_value(lower, upper)
    value = (values[0] or 0.0) / values[1]
    return {"value": value, "lower": min(lower, value), "upper": max(upper, value)}


def _ratio_interval(
    both: tuple[ComparedNumber, ComparedNumber], records: Sequence[Record], methods: IntervalMethods
) -> tuple[float, float]:
    """Return the ratios that no method excludes; infinite ends where they are not bounded."""
    pair = JointRatio.from_numbers(both, methods.joint) if methods.joint else None
    intervals = [] if pair is None else [pair.plausible_ratios()]
    if methods.separate or pair is None:
        intervals.append(_quotient_of_intervals(*map(_record_ends, records)))
    return _intersect_intervals(intervals)


def _quotient_of_intervals(first: tuple[float, float], second: tuple[float, float]) -> tuple[float, float]:
    """Return the range of quotients of numbers in these ranges, rounded outwards; unbounded if the second may be 0."""
    if second[0] <= 0 <= second[1] or not all(map(math.isfinite, (*first, *second))):
        return -math.inf, math.inf
    quotients = [a / b for a in first for b in second]
    return math.nextafter(min(quotients), -math.inf), math.nextafter(max(quotients), math.inf)


def _noise_unit(number: ComparedNumber) -> float:
    """Return the half-width of a number by itself; its step if its noise is 0 in most releases, ∞ without a bound."""
    terms = joint_noise_terms([_with_weight(number, 1.0, 0.0)])
    if terms is None:
        return math.inf
    return sum_half_width(terms, OUTSIDE) or max((term.size for term in terms), default=0.0) or 1.0


def _with_weight(number: ComparedNumber, weight: float, tolerance: float) -> ComparedNumber:
    return ComparedNumber(number.query, number.integers, number.noises, number.key, weight, tolerance)


@dataclass(frozen=True, slots=True)
class JointRatio:
    """Two numbers in units of their noise; the ratio tan φ · units[0] / units[1] is the angle φ, from −90° to 90°."""

    both: tuple[ComparedNumber, ComparedNumber]
    estimates: tuple[LinearEstimate, LinearEstimate]
    units: tuple[float, float]
    outside: float
    """The probability with which the true ratio may be excluded."""

    @classmethod
    def from_numbers(cls, both: tuple[ComparedNumber, ComparedNumber], outside: float) -> Self | None:
        """Return the pair; None if a number has no linear estimate."""
        first, second = (number.estimate for number in both)
        if first is None or second is None:
            return None
        return cls(both, (first, second), (_noise_unit(both[0]), _noise_unit(both[1])), outside)

    def plausible_ratios(self) -> tuple[float, float]:
        """Return the ends of all ratios that are not excluded, rounded outwards."""
        if not max(self.units) < math.inf:
            return -math.inf, math.inf
        return self._end_of_ratios(-1), self._end_of_ratios(1)

    def _scaled_values(self) -> tuple[float, float]:
        first, second = (number.raw_value / unit for number, unit in zip(self.estimates, self.units, strict=True))
        return first, second

    def _end_of_ratios(self, side: Literal[-1, 1]) -> float:
        """Return the lower (−1) or the upper end; infinite if no ratio is excluded, from ± 90° to the observed one."""
        observed = math.atan2(*self._scaled_values())
        observed -= math.pi * round(observed / math.pi)  # a ratio has two directions
        angle = _excluded_from(side * math.pi / 2, observed, self.excludes_angles)
        if angle is None:
            return side * math.inf
        ratio = math.tan(angle) * self.units[0] / self.units[1]
        return ratio + side * abs(ratio) * 1e-12

    def excludes_angles(self, low: float, high: float) -> bool:
        """Return whether no ratio between two angles is plausible; the observed one is not between them.

        All are excluded at once: the weights of both numbers are those of the whole step.
        """
        cosines = [math.cos(low), math.cos(high), *([1.0] if low < 0 < high else [])]
        sines = [math.sin(low), math.sin(high)]
        weights = [
            (sign * (max(ends) + min(ends)) / (2 * unit), (max(ends) - min(ends)) / (2 * unit) + 1e-15 / unit)
            for ends, unit, sign in ((cosines, self.units[0], 1), (sines, self.units[1], -1))
        ]
        terms = joint_noise_terms([_with_weight(number, *w) for number, w in zip(self.both, weights, strict=True)])
        width = math.inf if terms is None else sum_half_width(terms, self.outside)
        width += math.fsum((abs(w) + t) * one.allowance for (w, t), one in zip(weights, self.estimates, strict=True))
        scaled = self._scaled_values()
        nearest = min(abs(math.cos(end) * scaled[0] - math.sin(end) * scaled[1]) for end in (low, high))
        return nearest > width * (1 + 1e-9)


def _excluded_from(start: float, observed: float, is_excluded: Callable[[float, float], bool]) -> float | None:
    """Return the angle nearest to the observed one up to which all from ``start`` are excluded; None without any.

    Angles nearer than the smallest step are not tried: of two numbers with one noise, every other ratio is excluded.
    """
    edge, step, direction = start, FIRST_STEP, math.copysign(1.0, observed - start)
    while step >= max(LAST_STEP * abs(edge - observed), SMALLEST_STEP) and abs(edge - observed) >= SMALLEST_STEP:
        following = edge + direction * min(step, abs(observed - edge) * 0.999)
        if is_excluded(min(edge, following), max(edge, following)):
            edge, step = following, step * 2
        else:
            step /= 2
    return None if edge == start else edge


# Comparisons of whole answers: which numbers are compared, by group.

DIFFERENCE, RATIO = "difference", "ratio"
COMPARISON_KINDS = (DIFFERENCE, RATIO)
MAX_COLUMNS = 2
"""Most columns of ``between``: each doubles the numbers that are compared."""
QUANTILE_ADVICE = "compare counts, sums, means, proportions, ratios, variances, correlations or regressions"


@dataclass(frozen=True, slots=True, eq=False)
class NoisyAnswer:
    """The noisy integers of an answer, by group, with their noises."""

    query: Query
    keys: tuple[Key, ...]
    integers: tuple[Mapping[str, int], ...]
    noises: Noises


@final
@dataclass(frozen=True, slots=True)
class comparison:
    """The difference or the ratio of two answers of a plan, or of two groups of an answer: at no further cost.

    ``kind`` is "difference" or "ratio", ``first`` and ``second`` are the names of answers with the same groups: the
    comparison has one number for each group. ``between={"year": (2014, 2013)}`` compares two groups of ``first``, by
    the values of one of its key columns. Both together, or two columns, are a difference of differences. The 95 %
    interval is that of the joint distribution of all noises; ``Session.plan(comparisons=...)`` and
    ``Answers.difference`` and ``Answers.ratio`` compute it. Raises ``PlanError`` for an invalid parameter.

    >>> comparison("difference", "mean_price", between={"after": (1, 0), "near": (1, 0)}).name
    'difference_mean_price_after_near'
    """

    kind: str
    """Either "difference" or "ratio"."""
    first: str
    """The name of an answer."""
    second: str | None = None
    """The name of the answer that is subtracted, or the denominator."""
    between: Mapping[str, Sequence[object]] = field(default_factory=dict, hash=False)
    """The two values of a key column whose groups are compared: the second is subtracted, or the denominator."""
    name: str | None = field(default=None, kw_only=True)
    """The name of the comparison; by default made of its parts."""
    title: str | None = field(default=None, kw_only=True)
    """A heading for readers."""
    description: str | None = field(default=None, kw_only=True)
    """A paragraph for readers."""
    unit: str | None = field(default=None, kw_only=True)
    """The unit of the values, for readers."""
    round_to: float | None = field(default=None, kw_only=True)
    """The width of the grid to which values are rounded for readers; ends of intervals are rounded outwards."""

    def __post_init__(self) -> None:
        if self.kind not in COMPARISON_KINDS:
            raise PlanError(
                "kind",
                self.kind,
                f"one of {quoted_names(COMPARISON_KINDS)}",
                suggest_nearest(self.kind, COMPARISON_KINDS),
            )
        self._check_texts()
        grid_width(self.round_to)
        self._check_between()
        if self.second is None and not self.between:
            raise PlanError.from_text("second", "missing; name another answer, or say between={...} for two groups")
        if self.kind == RATIO and (self.second is None) != (len(self.between) == 1):
            text = "a ratio is of two answers (first and second), or of two groups of one (between, one column)"
            raise PlanError.from_text("between", text)
        if self.second == self.first:
            raise PlanError.from_text("second", "it is the first answer; use between={...} to compare two groups of it")
        parts = [self.kind, self.first, *([self.second] if self.second else []), *map(str, self.between)]
        object.__setattr__(self, "name", self.name or "_".join(parts))

    def _check_texts(self) -> None:
        """Raise ``PlanError`` for a text that is empty or of another type."""
        if not isinstance(self.first, str):
            raise PlanError("first", self.first, "the name of an answer")
        for parameter in ("first", "second", "name", "title", "description", "unit"):
            text = getattr(self, parameter)
            if not (text is None or (isinstance(text, str) and text.strip())):
                raise PlanError(parameter, text, "a non-empty text")

    def _check_between(self) -> None:
        """Raise ``PlanError`` unless ``between`` has two different values of each column."""
        if not isinstance(self.between, Mapping) or len(self.between) > MAX_COLUMNS:
            raise PlanError("between", self.between, f"at most {MAX_COLUMNS} columns", 'say {"year": (2014, 2013)}')
        for column, pair in self.between.items():
            is_pair = isinstance(pair, (list, tuple)) and len(pair) == 2
            if not is_pair or pair[0] == pair[1]:
                raise PlanError("between", column, "two different values of each column", 'say {"year": (2014, 2013)}')

    def check_answers(self, queries: Sequence[Query]) -> None:
        """Raise ``PlanError`` unless the plan has these answers, with the same groups."""
        query_by_name = {query.asked.name: query for query in queries}
        if self.name in query_by_name:
            raise PlanError("name", self.name, "a name that no answer has", "give the comparison another name")
        for parameter, name in (("first", self.first), ("second", self.second)):
            if name is None:
                continue
            if name not in query_by_name:
                raise PlanError(parameter, name, "the name of an answer", suggest_nearest(name, tuple(query_by_name)))
            query = query_by_name[name]
            if not query.comparable:
                text = f"answers of kind {query.kind!r} cannot be compared, as their intervals are for 95 % alone"
                raise PlanError.from_text(parameter, f"{text}; {QUANTILE_ADVICE}")
        compared = [query_by_name[name] for name in (self.first, self.second) if name is not None]
        if len({frozenset(query.key_columns) for query in compared}) > 1:
            text = f"{self.second!r} has other groups than {self.first!r}: give both the same by"
            raise PlanError.from_text("second", text)
        for query in compared:
            self._check_keys(query)

    def _check_keys(self, query: Query) -> None:
        """Raise ``PlanError`` unless an answer has the key columns of ``between``, with their values if listed."""
        columns, name = query.key_columns, query.asked.name
        for column, pair in self.between.items():
            if column not in columns:
                expected = f"one of the key columns of {name!r}: {quoted_names(columns)}"
                raise PlanError("between", column, expected if columns else f"left out: {name!r} has no groups")
            keys = None if query.asked.keys is None else [key[columns.index(column)] for key in query.asked.keys]
            for value in pair:
                if keys is not None and not any(_is_same_key(key, value) for key in keys):
                    raise PlanError("between", value, f"one of the keys of {column!r} in {name!r}")

    def text_of(self, titles: Sequence[str]) -> str:
        """Return the comparison in words, given the titles of its one or two answers."""
        joined = " minus " if self.kind == DIFFERENCE else " divided by "
        answers = titles[0] if len(titles) == 1 else joined.join(f"[{title}]" for title in titles)
        groups = [
            f"{escape_control_chars(column)} {escape_control_chars(str(pair[0]))}{joined}"
            f"{escape_control_chars(str(pair[1]))}"
            for column, pair in self.between.items()
        ]
        return f"{answers}: {', '.join(groups)}" if groups else answers

    @property
    def meaning(self) -> str:
        """Return what the number means: the first sentence of its explanation."""
        joined = "minus" if self.kind == DIFFERENCE else "divided by"
        if not self.between:
            return f"The first answer {joined} the second one"
        numbers = "the number" if self.second is None else f"the first answer {joined} the second one,"
        (column, (plus, minus)), *others = self.between.items()
        text = f"{numbers} for {column} {plus} {joined} that for {column} {minus}"
        if others:
            column, (plus, minus) = others[0]
            return f"A difference of differences: {text}, where {column} is {plus}; minus the same where it is {minus}"
        return text[:1].upper() + text[1:]

    def compare_answers(self, answers: Mapping[str, NoisyAnswer]) -> tuple[tuple[str, ...], list[dict[str, Any]]]:
        """Return the key columns, and one record for each group in which all numbers are shown.

        Without key columns it is always one record; its value is None if a number is not shown.
        """
        first = answers[self.first]
        columns = tuple(column for column in first.query.key_columns if column not in self.between)
        numbers_by_group = self._numbers_by_group(first, columns, 1)
        count = 1 << len(self.between)
        if self.second is not None:
            others = self._numbers_by_group(answers[self.second], columns, -1)
            numbers_by_group = {key: [*numbers, *others.get(key, [])] for key, numbers in numbers_by_group.items()}
            count *= 2
        records = []
        for key, numbers in numbers_by_group.items():
            if len(numbers) < count:
                continue
            if self.kind == DIFFERENCE:
                record = weighted_sum_record(numbers)
            else:
                record = ratio_record(*sorted(numbers, key=lambda number: -number.weight))
            records.append({**dict(zip(columns, key, strict=True)), **record})
        if not records and not columns:  # a group that is compared is not shown
            records.append({"value": None, "lower": None, "upper": None})
        return columns, records

    def _numbers_by_group(
        self, answer: NoisyAnswer, columns: tuple[str, ...], sign: int
    ) -> dict[Key, list[ComparedNumber]]:
        """Return the numbers of an answer by the keys in ``columns``, each with its sign."""
        names = answer.query.key_columns
        numbers: dict[Key, list[ComparedNumber]] = {}
        for key, integers in zip(answer.keys, answer.integers, strict=True):
            value_by_column = dict(zip(names, key, strict=True))
            weight = sign
            for column, (plus, minus) in self.between.items():
                weight *= _is_same_key(value_by_column[column], plus) - _is_same_key(value_by_column[column], minus)
            if weight:
                group = tuple(value_by_column[column] for column in columns)
                numbers.setdefault(group, []).append(ComparedNumber(answer.query, integers, answer.noises, key, weight))
        return numbers


def _is_same_key(key: object, value: object) -> bool:
    """Return whether a value in a comparison is this key; a date or a number may be written as text."""
    return key == value or (isinstance(value, str) and key is not None and str(key) == value)
