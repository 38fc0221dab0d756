"""Least squares for marginals: brute force on small tables, exact consistency and variances, the law of a cell."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from tests.noise.marginals.test_workload import dense_query, measurement_of
from tightrope.documents.budget import Budget
from tightrope.errors import InputError
from tightrope.mechanisms.discrete.integer_tables import gaussian_table, truncated_geometric
from tightrope.mechanisms.discrete.noise_table import NoiseTable
from tightrope.noise.marginals.reconstruction import NoiseTerm, Reconstruction, expected_error, half_width
from tightrope.noise.marginals.selection import allocate_marginal_noise
from tightrope.noise.marginals.workload import MarginalWorkload, Measurement


def random_case(rng):
    """Return a workload, measurements that inform about all components, and their variances."""
    sizes = rng.integers(2, 5, rng.integers(1, 4)).tolist()
    every = [c for k in range(len(sizes) + 1) for c in combinations(range(len(sizes)), k)]
    chosen = [every[i] for i in rng.choice(len(every), rng.integers(1, len(every) + 1), replace=False)]
    workload = MarginalWorkload.from_marginals(sizes, chosen)
    widest = int(rng.integers(1, 5))
    measurements = [measurement_of(workload, columns, widest) for columns in workload.components]
    variances = [Fraction(int(rng.integers(1, 400)), int(rng.integers(1, 9))) for _ in measurements]
    return workload, measurements, variances


def dense_estimator(workload, reconstruction):
    """Return the weighted least-squares matrix from all integers to the full table, and the integers' measurements."""
    queries = [dense_query(workload.sizes, m.columns, m.differences) for m in reconstruction.measurements]
    stacked = np.vstack(queries)
    weights = np.concatenate(
        [np.full(len(q), float(p)) for q, p in zip(queries, reconstruction.precisions, strict=True)]
    )
    owner = np.concatenate([np.full(len(q), i) for i, q in enumerate(queries)])
    information = stacked.T @ (weights[:, None] * stacked)
    return np.linalg.pinv(information, rcond=1e-10) @ (stacked.T * weights), owner


@pytest.mark.parametrize("seed", range(25))
def test_marginals_are_those_of_dense_least_squares(seed):
    rng = np.random.default_rng(seed)
    workload, measurements, variances = random_case(rng)
    reconstruction = Reconstruction.from_variances(workload, measurements, variances)
    integers = [rng.integers(-30, 30, m.shape) for m in measurements]
    estimator, owner = dense_estimator(workload, reconstruction)
    full = estimator @ np.concatenate([np.ravel(table) for table in integers])
    fitted = reconstruction.fit_tables(integers)
    spread = np.array([float(variances[i]) for i in owner])
    for columns in workload.marginals:
        query = dense_query(workload.sizes, columns, ())
        assert np.ravel(fitted[columns]) == pytest.approx(query @ full, abs=1e-8)
        influence = query @ estimator
        variance = (influence**2) @ spread
        assert variance == pytest.approx(float(reconstruction.cell_variance(columns, variances)), rel=1e-9)
        terms = reconstruction.noise_terms(columns)
        for row in influence:
            found = Counter()
            for position, value in zip(owner, row, strict=True):
                if abs(value) > 1e-9:
                    found[position, round(abs(value), 7)] += 1
            stated = Counter()
            for term in terms:
                stated[term.position, round(abs(float(term.coefficient)), 7)] += term.multiplicity
            assert found == stated


@pytest.mark.parametrize("seed", range(12))
def test_consistency_and_variances_are_exact(seed):
    rng = np.random.default_rng(100 + seed)
    workload, measurements, variances = random_case(rng)
    reconstruction = Reconstruction.from_variances(workload, measurements, variances)
    fitted = reconstruction.fit_tables([rng.integers(-99, 99, m.shape) for m in measurements], exact=True)
    for larger in workload.marginals:
        total = sum(
            (t.multiplicity * t.coefficient**2 * variances[t.position] for t in reconstruction.noise_terms(larger)),
            Fraction(0),
        )
        assert total == reconstruction.cell_variance(larger, variances)
        for smaller in workload.marginals:
            common = tuple(sorted(set(larger) & set(smaller)))
            sums = [
                table.sum(axis=tuple(a for a, i in enumerate(columns) if i not in common))
                for columns, table in ((larger, fitted[larger]), (smaller, fitted[smaller]))
            ]
            assert np.all(sums[0] == sums[1])
            assert all(isinstance(value, Fraction) for value in fitted[larger].ravel())


@pytest.mark.parametrize("seed", range(12))
def test_without_noise_the_marginals_are_the_true_ones_whatever_the_weights(seed):
    rng = np.random.default_rng(200 + seed)
    workload, measurements, variances = random_case(rng)
    reconstruction = Reconstruction.from_variances(workload, measurements, variances)
    full = rng.integers(0, 50, workload.sizes)

    def marginal(columns):
        return full.sum(axis=tuple(i for i in range(full.ndim) if i not in columns))

    fitted = reconstruction.fit_tables([m.count_integers(marginal(m.columns)) for m in measurements], exact=True)
    for columns in workload.marginals:
        assert np.all(fitted[columns] == marginal(columns))


def test_weights_need_not_be_exact():
    """Twelve digits of the weights cost less than a millionth of the variance."""
    rng = np.random.default_rng(8)
    for _ in range(20):
        workload, measurements, variances = random_case(rng)
        rounded = Reconstruction.from_variances(workload, measurements, variances)
        exact = Reconstruction(workload, tuple(measurements), tuple(1 / variance for variance in variances))
        for columns in workload.marginals:
            best = exact.cell_variance(columns, variances)
            assert best <= rounded.cell_variance(columns, variances) <= best * (1 + Fraction(1, 10**6))


def test_measurements_must_inform_about_every_component():
    workload = MarginalWorkload.from_orders((2, 3), (2,))
    with pytest.raises(InputError) as error:
        Reconstruction(workload, (Measurement(workload, (0, 1), (0,)),), (Fraction(1),))
    assert error.value.name == "measurements"
    with pytest.raises(InputError):
        Reconstruction(workload, (Measurement(workload, (0, 1), ()),), (Fraction(0),))
    good = Reconstruction(workload, (Measurement(workload, (0, 1), ()),), (Fraction(1),))
    with pytest.raises(InputError):
        good.fit_tables([np.zeros((3, 2))])
    with pytest.raises(InputError):
        good.fit_tables([])


def exact_quantile(terms, tables, outside=0.05):
    """Return the least w with P(|error| > w) ≤ 5 %, by enumeration, and the standard deviation."""
    law = {Fraction(0): 1.0}
    for term in terms:
        cells = [float(w) / 2**128 for w in tables[term.position].cell_weights()]
        for _ in range(term.multiplicity):
            following = Counter()
            for value, mass in law.items():
                for x, p in enumerate(cells):
                    if p > 1e-12:
                        following[value + term.coefficient * x] += mass * p
                        if x:
                            following[value - term.coefficient * x] += mass * p
            law = {value: mass for value, mass in following.items() if mass > 1e-13}
    sizes = Counter()
    for value, mass in law.items():
        sizes[abs(value)] += mass
    remaining = 1.0
    for size in sorted(sizes):
        remaining -= sizes[size]
        if remaining <= outside + 1e-12:
            return float(size), math.sqrt(sum(float(v) ** 2 * m for v, m in law.items()))
    raise AssertionError


CASES = [
    ([NoiseTerm(0, Fraction(1), 1)], [gaussian_table(3.0)]),
    ([NoiseTerm(0, Fraction(1), 1)], [truncated_geometric(scale=4.0, largest=30)]),
    ([NoiseTerm(0, Fraction(1), 1)], [NoiseTable.from_probabilities([1.0], tail_ratio=0.6)]),
    ([NoiseTerm(0, Fraction(1), 1)], [NoiseTable.from_probabilities([5, 4, 1])]),
    ([NoiseTerm(0, Fraction(3, 7), 2), NoiseTerm(1, Fraction(-1, 5), 2)], [gaussian_table(1.5), gaussian_table(2.0)]),
    ([NoiseTerm(0, Fraction(1, 3), 4)], [gaussian_table(2.5)]),
    ([NoiseTerm(0, Fraction(1, 2), 2), NoiseTerm(0, Fraction(1, 1000), 3)], [NoiseTable.from_probabilities([9, 3, 1])]),
]


@pytest.mark.parametrize(("terms", "tables"), CASES)
@pytest.mark.parametrize("outside", [0.05, 0.01, 0.2])
def test_half_widths_are_not_below_the_exact_quantile_and_near_it(terms, tables, outside):
    exact, deviation = exact_quantile(terms, tables, outside)
    width = half_width(terms, tables, outside)
    assert exact <= width <= exact + 0.013 * deviation


def test_a_noise_of_zero_has_no_width():
    assert half_width([], [gaussian_table(1.0)]) == 0.0


@pytest.mark.parametrize(
    ("table", "least"),
    [(gaussian_table(9_000.0), 1.95 * 9_000), (NoiseTable.from_probabilities([1, *[0] * 400, 0.01]), 0.0)],
    ids=["wide", "two scales"],
)
def test_wide_noise_and_heavy_tails_get_a_bound(table, least):
    width = half_width([NoiseTerm(0, Fraction(1), 1)], [table])
    assert least <= width <= max(1.6 * least, 800)
    outside = sum(w for x, w in enumerate(table.cell_weights()) if x > width) / 2**127
    assert outside <= 0.05


RARE = NoiseTable.from_probabilities([1.0, 1e-8])
ENDLESS = NoiseTable.from_probabilities([1.0], tail_ratio=1e-5)


@pytest.mark.parametrize("outside", [0.05, 1e-6, 1e-9])
@pytest.mark.parametrize("terms", [[NoiseTerm(0, Fraction(1), 1)], [NoiseTerm(0, Fraction(1, 2), 4)]])
@pytest.mark.parametrize("table", [RARE, ENDLESS, gaussian_table(9_000.0)])
def test_a_width_exists_for_every_noise(table, terms, outside):
    """For one noise it is at most the exact quantile; for several, at most the sum of those of each."""
    width = half_width(terms, [table], outside)
    count = sum(term.multiplicity for term in terms)
    assert width <= 2.000001 * max(table.half_width(1 - outside / count), 1)
    if count == 1 and table is not RARE:
        assert width >= table.half_width(1 - outside) * (1 - 1e-9)


@pytest.mark.parametrize("table", [RARE, ENDLESS])
def test_the_expected_error_of_rare_noise_is_that_of_its_absolute_value(table):
    assert expected_error([NoiseTerm(0, Fraction(1), 1)], [table]) == pytest.approx(table.mean_absolute, rel=1e-9)
    several = expected_error([NoiseTerm(0, Fraction(1, 3), 2), NoiseTerm(0, Fraction(1, 6), 3)], [table])
    assert several == pytest.approx(7 / 6 * table.mean_absolute, rel=1e-9)


def test_the_expected_error_of_usual_noise_is_within_a_thousandth_of_its_deviation():
    table = gaussian_table(2.0)
    error = expected_error([NoiseTerm(0, Fraction(1), 1)], [table])
    assert abs(error - table.mean_absolute) <= 1e-3 * math.sqrt(table.mean_squared)


def test_intervals_of_released_marginals_cover_what_they_state():
    """40 releases of 12 tables: 95 % intervals cover 94 to 97 %, and squared errors are as planned."""
    workload = MarginalWorkload.from_orders((2, 3, 4, 6), (1, 2))
    noise = allocate_marginal_noise(workload, Budget(epsilon=1, delta=1e-6))
    reconstruction = Reconstruction.from_variances(workload, noise.measurements, noise.variances)
    widths = {a: half_width(reconstruction.noise_terms(a), noise.tables) for a in workload.marginals}
    errors = {a: [] for a in workload.marginals}
    for _ in range(400):
        integers = [
            table.sample(math.prod(m.shape)).reshape(m.shape)
            for m, table in zip(noise.measurements, noise.tables, strict=True)
        ]
        for columns, table in reconstruction.fit_tables(integers).items():
            errors[columns] += table.ravel().tolist()
    for columns, seen in errors.items():
        variance = float(reconstruction.cell_variance(columns, noise.variances))
        assert np.mean(np.square(seen)) == pytest.approx(variance, rel=0.25)
        assert 0.90 <= np.mean(np.abs(seen) <= widths[columns]) <= 0.99
    inside = [np.abs(seen) <= widths[columns] for columns, seen in errors.items()]
    assert 0.94 <= np.concatenate(inside).mean() <= 0.97
    weighted = sum(workload.cells_of(a) * reconstruction.cell_variance(a, noise.variances) for a in workload.marginals)
    assert float(weighted) == pytest.approx(noise.weighted_variance, rel=1e-5)
