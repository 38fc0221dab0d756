"""Consistent marginals from noisy integers by least squares, their exact variances, and the law of a cell's error.

Components are estimated one by one (``docs/proofs/marginals.md``): measurement A says its part along B with a precision
in proportion to p_A Π_{i∈D} n_i / n_A. A marginal is the sum of its components, each spread evenly over the other
columns: marginals agree with each other, exactly if they are computed in fractions, whatever weights p_A > 0 are used.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tightrope.errors import InputError
from tightrope.mechanisms.discrete.noise_table import NoiseTable
from tightrope.noise.marginals.workload import (
    Columns,
    MarginalWorkload,
    Measurement,
    apply_along,
    pair_differences,
    subsets,
)
from tightrope.numerics.arrays import Floats
from tightrope.numerics.checks import check_inner_probability
from tightrope.numerics.root_finding import bisect_real
from tightrope.numerics.rounding import ROUND_OFF
from tightrope.randomness.alias_sampler import TOTAL

# 1. Least squares by components.

PRECISION_DIGITS = 12
"""Binary digits of a weight: it need not be exact, since variances are computed for the weights that are used."""


class NoiseTerm(NamedTuple):
    """``multiplicity`` independent noises of one measurement, each with this coefficient or its negative."""

    position: int
    coefficient: Fraction
    multiplicity: int


@dataclass(frozen=True)  # not slotted: cached properties
class Reconstruction:
    """Least squares for these measurements with weights ``precisions``, best in proportion to 1 / variance of a noise.

    Raises ``InputError`` unless the weights are positive and the measurements inform about every component.
    """

    workload: MarginalWorkload
    measurements: tuple[Measurement, ...]
    precisions: tuple[Fraction, ...]

    def __post_init__(self) -> None:
        if not len(self.precisions) == len(self.measurements) or not all(p > 0 for p in self.precisions):
            raise InputError("precisions", self.precisions, "one positive number for each measurement")
        for component, total in self.component_precisions.items():
            if not total > 0:
                raise InputError("measurements", component, "informative about every component", "count more integers")

    @classmethod
    def from_variances(
        cls, workload: MarginalWorkload, measurements: Sequence[Measurement], variances: Sequence[Fraction]
    ) -> Reconstruction:
        """Return the least squares for noise with these variances; weights are rounded to ``PRECISION_DIGITS``."""
        if not all(variance > 0 for variance in variances):
            raise InputError("variances", variances, "positive numbers")
        least = min(variances, default=Fraction(1))
        weights = (_round_to_digits(Fraction(least) / Fraction(variance)) for variance in variances)
        return cls(workload, tuple(measurements), tuple(weights))

    @cached_property
    def component_precisions(self) -> dict[Columns, Fraction]:
        """κ_B = Σ_A p_A Π_{i∈D} n_i / n_A over the measurements that inform about component B."""
        sums = dict.fromkeys(self.workload.components, Fraction(0))
        for measurement, precision in zip(self.measurements, self.precisions, strict=True):
            for component, factor in measurement.component_factors.items():
                if component in sums:
                    sums[component] += precision * factor
        return sums

    def fit_tables(self, integers: Sequence[NDArray[Any]], *, exact: bool = False) -> dict[Columns, NDArray[Any]]:
        """Return every marginal, from the noisy integers of each measurement in its shape.

        ``exact``: in fractions, so that marginals agree exactly; otherwise in doubles. Raises ``InputError`` for
        another shape.
        """
        parts = self._estimate_components(integers, exact=exact)
        return {columns: self._sum_components(parts, columns, exact=exact) for columns in self.workload.marginals}

    def _estimate_components(self, integers: Sequence[NDArray[Any]], *, exact: bool) -> dict[Columns, NDArray[Any]]:
        """Return the estimate of each component as a table over its columns, whose sum along every axis is 0."""
        if len(integers) != len(self.measurements):
            raise InputError("integers", len(integers), f"one array for each of {len(self.measurements)} measurements")
        estimates: dict[Columns, NDArray[Any]] = {}
        for measurement, precision, noisy in zip(self.measurements, self.precisions, integers, strict=True):
            if np.shape(noisy) != measurement.shape:
                raise InputError("integers", np.shape(noisy), f"shape {measurement.shape} for {measurement.columns}")
            counts = as_fractions(noisy) if exact else np.asarray(noisy, dtype=np.float64)
            for axis, column in enumerate(measurement.columns):
                if column in measurement.differences:
                    counts = apply_along(pair_differences(self.workload.sizes[column]).T, counts, axis)
            for component in measurement.component_factors:
                if component not in self.component_precisions:
                    continue
                weight = precision / (
                    self.workload.cells_of(measurement.columns) * self.component_precisions[component]
                )
                term = _project(counts, measurement, component) * (weight if exact else float(weight))
                estimates[component] = estimates[component] + term if component in estimates else term
        return estimates

    def _sum_components(self, parts: Mapping[Columns, NDArray[Any]], columns: Columns, *, exact: bool) -> NDArray[Any]:
        """Return a marginal: the sum of its components, each divided by the number of cells that share it."""
        shape = self.workload.shape_of(columns)
        zero = Fraction(0) if exact else 0.0
        total: NDArray[Any] = np.full(shape, zero, dtype=object if exact else np.float64)
        for component in subsets(columns):
            spread = tuple(self.workload.sizes[i] if i in component else 1 for i in columns)
            shared = self.workload.cells_of(columns) // self.workload.cells_of(component)
            share = Fraction(1, shared) if exact else 1 / shared
            total = total + np.reshape(parts[component], spread) * share
        return np.asarray(total)

    def cell_variance(self, columns: Columns, variances: Sequence[Fraction]) -> Fraction:
        """Return the exact variance of each cell of a marginal, from that of each measurement's noise.

        All cells of a marginal have the same variance, and components are uncorrelated for any weights.
        """
        weighted = dict.fromkeys(self.workload.components, Fraction(0))
        for measurement, precision, variance in zip(self.measurements, self.precisions, variances, strict=True):
            for component, factor in measurement.component_factors.items():
                if component in weighted:
                    weighted[component] += precision**2 * factor * Fraction(variance)
        total = sum(
            (
                self.workload.dimension_of(component) * weighted[component] / self.component_precisions[component] ** 2
                for component in subsets(columns)
            ),
            Fraction(0),
        )
        return total / self.workload.cells_of(columns) ** 2

    def noise_terms(self, columns: Columns) -> tuple[NoiseTerm, ...]:
        """Return the error of each cell of a marginal as a linear combination of the integers' noises.

        It has the same law for every cell, since noises are symmetric.
        """
        terms = []
        for position, measurement in enumerate(self.measurements):
            if set(measurement.differences) <= set(columns):
                terms += self._terms_of_measurement(position, measurement, columns)
        return tuple(terms)

    def _terms_of_measurement(self, position: int, measurement: Measurement, columns: Columns) -> list[NoiseTerm]:
        """Return the terms of one measurement: integers that agree with the cell along the same columns are equal."""
        workload, sizes = self.workload, self.workload.sizes
        common = tuple(i for i in measurement.columns if i in columns and i not in measurement.differences)
        elsewhere = math.prod(sizes[i] for i in measurement.columns if i not in columns)
        weights = {}
        for subset in subsets(common):
            component = tuple(sorted((*measurement.differences, *subset)))
            shared = workload.cells_of(columns) // workload.cells_of(component)
            weights[subset] = self.precisions[position] / (
                workload.cells_of(measurement.columns) * self.component_precisions[component] * shared
            )
        terms = []
        for equal in subsets(common):
            coefficient = sum(
                (
                    weight * math.prod((int(i in equal) - Fraction(1, sizes[i]) for i in subset), start=Fraction(1))
                    for subset, weight in weights.items()
                ),
                Fraction(0),
            )
            unequal = math.prod(sizes[i] - 1 for i in common if i not in equal)
            if coefficient:
                terms.append(NoiseTerm(position, coefficient, measurement.counts_per_row * unequal * elsewhere))
        return terms


def _project(counts: NDArray[Any], measurement: Measurement, component: Columns) -> NDArray[Any]:
    """Return the part of a table along a component: summed over other columns, and less the mean along its own.

    Along differences the mean is 0 already.
    """
    others = tuple(axis for axis, column in enumerate(measurement.columns) if column not in component)
    table = counts.sum(axis=others) if others else counts
    for axis, column in enumerate(component):
        if column not in measurement.differences:
            table = table - table.sum(axis=axis, keepdims=True) * (
                Fraction(1, table.shape[axis]) if table.dtype == object else 1 / table.shape[axis]
            )
    return np.asarray(table)


def as_fractions(table: NDArray[Any]) -> NDArray[Any]:
    """Return the integers of a table as fractions."""
    fractions = np.empty(np.shape(table), dtype=object)
    fractions[...] = np.frompyfunc(lambda value: Fraction(int(value)), 1, 1)(table)
    return fractions


def _round_to_digits(value: Fraction) -> Fraction:
    """Return a positive number with ``PRECISION_DIGITS`` binary digits near ``value``."""
    exponent = PRECISION_DIGITS - math.frexp(float(value))[1]
    scale = Fraction(2) ** exponent
    return Fraction(round(value * scale)) / scale


# 2. The half-width of an interval for a cell, from the characteristic functions of the noises.
#
# X is the error, G an independent normal number with the standard deviation τ. If |X| > w, then |X + G| > w − g at
# least with probability Φ(g/τ). P(|X + G| ≤ w − g) is a Fourier series on a period L, up to P(|X + G| > L − w). See
# ``docs/proofs/marginals.md``.

SMOOTHING = 1 / 800
"""τ, in standard deviations of the error."""
MARGIN_DEVIATIONS = 4.2
"""g, in units of τ."""
MARGIN_PROBABILITY = 1 - 2e-5
"""Less than Φ(4.2) = 1 − 1.3e-5."""
RARE_DEVIATIONS = 3.0
"""Noise is rare if one step of it is more than this many standard deviations of the error."""
PERIOD = 24.0
"""L, in standard deviations of the error."""
LAST_FREQUENCY = 7.5
"""Frequencies up to this over τ are used: the rest has a factor of at most e^{−28}."""
NEGLIGIBLE_FACTOR = 1e-17
"""Frequencies at which the product has become smaller are not followed further."""
GRID_ERROR = 1e-12
"""Allowed error of interpolation between grid points."""
LARGEST_EXPONENT = 600.0
"""Rates times lengths of tables above this are not tried: their exponentials would overflow."""
STEEPEST_RATE = 0.8
"""Largest rate of a moment, relative to the decay of an endless tail."""
FINEST_GRID = 1 << 22
"""Largest number of grid points of a characteristic function."""
CHERNOFF_RATES = (0.25, 0.5, 1.0, 1.1, 1.5, 2.0, 2.7, 4.0, 8.0)
"""Chernoff's bounds are tried at these rates, over the standard deviation."""
MOST_UNCERTAIN = 2e-3
"""If more of the allowed probability than this is unaccounted for, Chernoff's bound is used."""
EXPECTATION_TERMS = 4_000
"""Terms of the series of E|error|; those beyond change it by less than 2 L / (4 π² · 4,000) < 10⁻³ deviations."""
WIDTH_TOLERANCE = 1e-5
"""Relative precision of the half-width."""


def half_width(terms: Sequence[NoiseTerm], tables: Sequence[NoiseTable], outside: float = 0.05) -> float:
    """Return w with P(|error| > w) ≤ ``outside``: for 5 % and 1 %, within 0.5 % of the least one.

    ``terms``: the error as a sum over noises of ``tables``, by position. If noise is too wide for the grid, or its tail
    too heavy, the smaller of two bounds is returned: Chernoff's, and the sum of widths that any of the noises exceeds
    with probability at most ``outside``, which is exact for one noise.
    """
    allowed = check_inner_probability("outside", outside)
    deviation = math.sqrt(math.fsum(_term_variance(term, tables) for term in terms))
    if not deviation > 0:
        return 0.0
    width = _series_half_width(terms, tables, deviation, allowed)
    if width is None:
        moments = _log_moments(terms, tables, deviation)
        chernoff = min((moment + math.log(2 / allowed)) / rate for rate, moment in moments)
        confidence = 1 - allowed / sum(term.multiplicity for term in terms)
        widths = (
            term.multiplicity * abs(float(term.coefficient)) * tables[term.position].half_width(confidence)
            for term in terms
        )
        width = min(chernoff, math.fsum(widths)) * (1 + 1e-9)
    return width


def expected_error(terms: Sequence[NoiseTerm], tables: Sequence[NoiseTable]) -> float:
    """Return E|error| of a cell, within 10⁻³ of its standard deviation; a larger number if noise is wide or rare.

    Rare noise is 0 nearly always, so that one step of it is more than ``RARE_DEVIATIONS``: then it is the sum of the
    absolute noises. Wide noise: the standard deviation.

    The Fourier series of the distance from the nearest multiple of the period L, L/4 − 2L/π² Σ cos(2πky/L)/k² over odd
    k, has the expectation of the same series with E cos in place of cos.
    """
    deviation = math.sqrt(math.fsum(_term_variance(term, tables) for term in terms))
    if not deviation > 0:
        return 0.0
    largest_step = max(abs(float(term.coefficient)) for term in terms if _term_variance(term, tables) > 0)
    if largest_step > RARE_DEVIATIONS * deviation:
        absolute = (
            term.multiplicity * abs(float(term.coefficient)) * tables[term.position].mean_absolute for term in terms
        )
        return min(deviation, math.fsum(absolute))
    period = PERIOD * deviation
    odd = np.arange(1, 2 * EXPECTATION_TERMS, 2, dtype=np.float64)
    product = _characteristic_product(terms, tables, np.asarray(odd * (2 * math.pi / period)))
    if product is None:
        return deviation
    return min(deviation, period / 4 - 2 * period / math.pi**2 * float(np.sum(product[0] / odd**2)))


def _series_half_width(
    terms: Sequence[NoiseTerm], tables: Sequence[NoiseTable], deviation: float, allowed: float
) -> float | None:
    """Return the half-width by the Fourier series; None if too much probability is unaccounted for."""
    tau, step = SMOOTHING * deviation, 2 * math.pi / (PERIOD * deviation)
    frequencies = np.asarray(step * np.arange(1, math.ceil(LAST_FREQUENCY / tau / step) + 1), dtype=np.float64)
    product = _characteristic_product(terms, tables, frequencies)
    if product is None:
        return None
    factors, error = product
    factors *= np.exp(-((tau * frequencies) ** 2) / 2)
    orders = np.arange(1, len(frequencies) + 1)
    # Σ 2/(πk) times the error of each factor, and the terms beyond the last frequency.
    uncertain = 2 / math.pi * (math.log(len(orders)) + 1) * error
    later_terms = (1 + 1 / (LAST_FREQUENCY * step * tau)) / len(orders)
    uncertain += 2 / math.pi * math.exp(-(LAST_FREQUENCY**2) / 2) * later_terms
    # Chernoff's bound on P(|X + G| > L − w).
    exponents = (
        moment + (rate * tau) ** 2 / 2 - rate * (PERIOD - 4) * deviation
        for rate, moment in _log_moments(terms, tables, deviation)
    )
    uncertain += 2 * math.exp(min(0.0, *exponents) + 1e-9)
    if not uncertain <= MOST_UNCERTAIN * allowed:
        return None
    used = np.abs(factors) > NEGLIGIBLE_FACTOR
    uncertain += 2 / math.pi * NEGLIGIBLE_FACTOR * len(orders) + 1e-12
    amplitudes, used_frequencies = 2 * factors[used] / (math.pi * orders[used]), frequencies[used]

    def is_exceeded_rarely(width: float) -> bool:
        inner = width - MARGIN_DEVIATIONS * tau
        inside = 2 * inner / (PERIOD * deviation) + float(np.sin(used_frequencies * inner) @ amplitudes)
        return (1 - (inside - uncertain)) / MARGIN_PROBABILITY <= allowed

    widest = 3.9 * deviation
    if not is_exceeded_rarely(widest):
        return None
    return bisect_real(is_exceeded_rarely, MARGIN_DEVIATIONS * tau, widest, side="passes", relative=WIDTH_TOLERANCE)


def _term_variance(term: NoiseTerm, tables: Sequence[NoiseTable]) -> float:
    return term.multiplicity * float(term.coefficient) ** 2 * tables[term.position].mean_squared


def _characteristic_product(
    terms: Sequence[NoiseTerm], tables: Sequence[NoiseTable], frequencies: Floats
) -> tuple[Floats, float] | None:
    """Return Π φ(c t)^m at each frequency t, and a bound on its error; None if some noise is too wide for a grid."""
    product, error = np.ones_like(frequencies), 0.0
    active = np.arange(len(frequencies))
    for term in sorted(terms, key=lambda term: _term_variance(term, tables), reverse=True):
        tabulated = _characteristic_grid(tables[term.position])
        if tabulated is None:
            return None
        grid, grid_error = tabulated
        if not len(active):
            break
        angles = np.abs(float(term.coefficient)) * frequencies[active]
        product[active] *= np.clip(_interpolate(grid, angles), -1.0, 1.0) ** term.multiplicity
        # Roundings of the angle move φ by at most E|X| times as much.
        rounding = 16 * ROUND_OFF * (1 + float(angles[-1]) * tables[term.position].mean_absolute)
        error += term.multiplicity * (grid_error + rounding)
        active = active[np.abs(product[active]) > NEGLIGIBLE_FACTOR]
    return product, error + NEGLIGIBLE_FACTOR


def _interpolate(grid: Floats, angles: Floats) -> Floats:
    """Return a function of period 2π at these angles from its values on a grid, by cubic polynomials."""
    places = angles * (len(grid) / (2 * math.pi))
    cells = np.floor(places)
    s, first = places - cells, cells.astype(np.int64) % len(grid)
    before, left, right, after = (grid.take(first + offset, mode="wrap") for offset in (-1, 0, 1, 2))
    return np.asarray(
        -s * (s - 1) * (s - 2) / 6 * before
        + (s + 1) * (s - 1) * (s - 2) / 2 * left
        - (s + 1) * s * (s - 2) / 2 * right
        + (s + 1) * s * (s - 1) / 6 * after
    )


@lru_cache(maxsize=64)
def _probabilities(table: NoiseTable) -> Floats:
    """Return P(X = x), x = 0, 1, …; what is left out of an endless tail is below 2⁻¹²⁸ in each place."""
    return np.array([weight / TOTAL for weight in table.cell_weights()])


@lru_cache(maxsize=64)
def _characteristic_grid(table: NoiseTable) -> tuple[Floats, float] | None:
    """Return E cos(uX) at u = 2πj/M, and a bound on the error of cubic interpolation, 9/384 h⁴ E X⁴.

    None if M would be above ``FINEST_GRID``.
    """
    half = _probabilities(table)
    fourth_moment = 2 * float(half @ np.arange(len(half), dtype=np.float64) ** 4)
    spacing = (GRID_ERROR / (9 / 384 * max(fourth_moment, 1e-6))) ** 0.25
    points = max(1 << 12, 1 << math.ceil(math.log2(2 * math.pi / spacing)))
    if points > FINEST_GRID:
        return None
    folded = np.bincount(np.arange(len(half)) % points, half, points)
    folded += np.bincount(-np.arange(1, len(half)) % points, half[1:], points)
    one_side = np.fft.rfft(folded).real
    return np.concatenate([one_side, one_side[-2:0:-1]]), GRID_ERROR + 64 * ROUND_OFF * math.log2(points)


def _log_moments(
    terms: Sequence[NoiseTerm], tables: Sequence[NoiseTable], deviation: float
) -> list[tuple[float, float]]:
    """Return rates s > 0, and log E e^{sX} of the error, not below it."""
    scales = [(t.multiplicity, tables[t.position], abs(float(t.coefficient))) for t in terms]
    rates = [relative / deviation for relative in CHERNOFF_RATES]
    return [(rate, math.fsum(count * _log_moment(table, rate * c) for count, table, c in scales)) for rate in rates]


def _log_moment(table: NoiseTable, rate: float) -> float:
    """Return log E e^{rate X}, not below it; ∞ if the tail of the table may be too heavy."""
    half = _probabilities(table)
    if rate * len(half) > LARGEST_EXPONENT:
        return math.inf
    x = np.arange(len(half), dtype=np.float64)
    # E cosh(rate X) − 1 by sinh², without cancellation.
    excess = 4 * float(half[1:] @ np.sinh(rate * x[1:] / 2) ** 2)
    if table.tail is not None:
        # Listed weights are rounded down by less than 2⁻¹²⁸, and fall by e^{−decay} from place to place beyond.
        block = len(table.tail.block)
        decay = math.log(TOTAL / table.tail.escape) / block
        if not rate <= STEEPEST_RATE * decay:
            return math.inf
        sums = -1 / math.expm1(-rate) - 1 / math.expm1(rate - decay)
        excess += 4 / TOTAL * math.exp(rate * (len(half) + block)) * sums
    return math.log1p(excess) * (1 + 1e-12)
