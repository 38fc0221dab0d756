"""Least squares beside linear algebra; intervals beside exact laws and beside draws."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import tightrope as tr
from tightrope.mechanisms.discrete.integer_tables import optimal_table
from tightrope.mechanisms.discrete.noise_table import NoiseTable
from tightrope.mechanisms.discrete.scaled_noise import WidenedNoise
from tightrope.release.consistency import ConsistentFit, LeastSquares, spread_of_sum, zero_table

RUNS = 4000
NONE: frozenset[int] = frozenset()
SQUARES = {
    "a total and its parts": LeastSquares((4,), (NONE, frozenset({0})), (Fraction(2), Fraction(3))),
    "two divisions": LeastSquares(
        (3, 2), (NONE, frozenset({0}), frozenset({1})), (Fraction(1), Fraction(5), Fraction(2))
    ),
    "a chain": LeastSquares((3, 2), (NONE, frozenset({0}), frozenset({0, 1})), (Fraction(1), Fraction(5), Fraction(2))),
    "no common table": LeastSquares(
        (3, 2, 2), (frozenset({0, 1}), frozenset({1, 2}), frozenset({1})), (Fraction(1), Fraction(5), Fraction(2))
    ),
    "one group": LeastSquares((1, 2), (frozenset({0}), frozenset({0, 1})), (Fraction(1), Fraction(1))),
}  # fmt: skip


def matrix(squares: LeastSquares) -> tuple[np.ndarray, np.ndarray]:
    """By impulses: what least squares make of all numbers, and what each is as a sum over the grid of all axes."""
    tables = [zero_table(squares.sizes, own) for own in squares.axes_by_table]
    columns = []
    for place, cell in [(p, c) for p, one in enumerate(tables) for c in np.ndindex(one.shape)]:
        given = [one.copy() for one in tables]
        given[place][cell] = Fraction(1)
        columns.append(np.concatenate([one.ravel() for one in squares.fit_tables(given)]).astype(float))
    places = list(itertools.product(*map(range, squares.sizes)))
    rows = [
        [float(all(cell[a] == at[a] for a in own)) for at in places]
        for one, own in zip(tables, squares.axes_by_table, strict=True)
        for cell in np.ndindex(one.shape)
    ]
    return np.array(columns).T, np.array(rows)


@pytest.mark.parametrize("name", SQUARES)
def test_it_is_weighted_least_squares(name):
    squares = SQUARES[name]
    found, sums = matrix(squares)
    cells = [math.prod(squares.sizes[axis] for axis in own) for own in squares.axes_by_table]
    root = np.repeat([float(v) ** -0.5 for v in squares.variances], cells)
    wanted = sums @ np.linalg.pinv(sums * root[:, None]) @ np.diag(root)
    assert found == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize("name", SQUARES)
def test_influences_are_the_rows_of_its_matrix(name):
    squares = SQUARES[name]
    found, _ = matrix(squares)
    cells = [math.prod(squares.sizes[axis] for axis in own) for own in squares.axes_by_table]
    first = np.cumsum([0, *cells])
    for place in range(len(cells)):
        listed = [(other, float(w)) for other, w, count in squares.noise_influences(place) for _ in range(count)]
        for row in found[first[place] : first[place + 1]]:
            for other in range(len(cells)):
                own = row[first[other] : first[other + 1]]
                stated = sorted(w for at, w in listed if at == other)
                assert sorted(own[np.abs(own) > 1e-12]) == pytest.approx(stated, abs=1e-12)


def exact_law(terms: list[tuple[WidenedNoise, Fraction, int]]) -> dict[Fraction, Fraction]:
    law = {Fraction(0): Fraction(1)}
    for noise, weight, count in terms:
        reach = int(noise.worst_error)
        beyond = {x: noise.survival_probability(x) for x in range(reach + 1)}
        at = {x: (beyond[x - 1] - beyond[x]) if x else 1 - 2 * beyond[0] for x in range(reach + 1)}
        own = {s * x: at[x] for x in at for s in (1, -1)}
        for _ in range(count):
            more: dict[Fraction, Fraction] = {}
            for (z, p), (x, q) in itertools.product(law.items(), own.items()):
                more[z + weight * x] = more.get(z + weight * x, Fraction(0)) + p * q
            law = more
    return law


@pytest.mark.parametrize(
    "weights",
    [
        [(1, 1)],
        [(Fraction(1, 2), 2)],
        [(Fraction(3, 4), 1), (Fraction(-1, 4), 3)],
        [(Fraction(2, 3), 1), (Fraction(1, 7), 2)],
    ],
)
@pytest.mark.parametrize("factor", [1, 2])
def test_an_interval_holds_95_percent_of_the_exact_law_and_hardly_more(weights, factor):
    noise = WidenedNoise(optimal_table([(2, 1e-3)]), factor)
    terms = [(noise, Fraction(weight), count) for weight, count in weights]
    law, found = exact_law(terms), spread_of_sum(frozenset(terms))

    def held(half: float) -> float:
        return float(sum(p for z, p in law.items() if abs(z) <= half))

    assert held(found.half_width) >= 0.95
    assert held(0.99 * found.half_width) < 0.95
    expected = float(sum(abs(z) * p for z, p in law.items()))
    assert found.expected_error == pytest.approx(expected, rel=5e-3)
    assert found.worst_error == pytest.approx(max(map(float, law)))


def test_wide_noise_and_many_small_ones():
    """Where the law is nearly normal, so is the interval; a stretched table has the law of the plain one, stretched."""
    noise = WidenedNoise(optimal_table([(1, 1e-6)]), 1)
    many = spread_of_sum(frozenset({(noise, Fraction(1, 50), 2500)}))
    deviation = noise.mean_squared_error**0.5
    assert 1.9599 * deviation < many.half_width < 1.97 * deviation
    wide = spread_of_sum(frozenset({(WidenedNoise(optimal_table([(1, 1e-6)]), 10**9), Fraction(1), 1)}))
    assert wide.half_width == pytest.approx(WidenedNoise(optimal_table([(1, 1e-6)]), 10**9).half_width(0.95), rel=5e-3)
    assert wide.half_width >= WidenedNoise(optimal_table([(1, 1e-6)]), 10**9).half_width(0.95)


def covered(fitted: ConsistentFit, runs: int) -> dict[str, np.ndarray]:
    """|error| of the first number of each answer over its half-width, by draws of the noise that runs."""
    found, _ = matrix(fitted.least_squares)
    cells = [math.prod(fitted.least_squares.sizes[axis] for axis in own) for own in fitted.least_squares.axes_by_table]
    draws = [
        np.asarray(noise.noise_mechanism.sample(runs * count)).reshape(runs, count)
        for noise, count in zip(fitted.noises, cells, strict=True)
    ]
    errors = np.concatenate(draws, axis=1) @ found.T
    first = np.cumsum([0, *cells])[:-1]
    return {
        name: np.abs(errors[:, place]) / fitted.spreads_by_answer[name].half_width
        for name, place in zip(fitted.joined.answers, first, strict=True)
    }


@pytest.mark.parametrize(("epsilon", "delta"), [(0.3, 1e-6), (1, 0), (4, 1e-6)])
def test_intervals_hold_the_truth_in_95_percent_of_releases_and_narrower_ones_do_not(epsilon, delta):
    """The seven standard deviations of 4000 releases: a right interval fails by luck less than once in 10^10."""
    table = pd.DataFrame({"x": [1.0], "flag": [True]})
    session = tr.Session(table, privacy_unit=None, budget=tr.Budget(epsilon=epsilon, delta=delta))
    flags = [True, False, None]
    asked = [tr.count(weight=4), tr.histogram("x", edges=[0, 1, 2, 3]), tr.count(by="flag", keys=flags)]
    sums = [tr.sum("x", bounds=(0, 9)), tr.sum("x", bounds=(0, 9), by="flag", keys=flags)]
    deviation = math.sqrt(0.05 * 0.95 / RUNS)
    every = session.plan([*asked, *sums]).draft.consistent_fits
    assert [len(fitted.joined.answers) for fitted in every] == [3, 2]
    for fitted in every:
        for name, over in covered(fitted, RUNS).items():
            assert np.mean(over <= 1) >= 0.95 - 7 * deviation, name
            assert np.mean(over <= 0.75) < 0.95 - 7 * deviation, name


@pytest.mark.parametrize(("last", "weight"), [(5, Fraction(4, 3)), (3, Fraction(7, 5)), (4, Fraction(1, 3))])
def test_the_largest_error_is_inside_where_it_is_likely(last, weight):
    """The half-width was cut to the largest error, rounded to nearest: 4.199999999999999 where |Z| is 21/5 at times."""
    noise = WidenedNoise(NoiseTable.from_probabilities([1.0] * (last + 1)), 1)
    half = Fraction(spread_of_sum(frozenset({(noise, weight, 1)})).half_width)
    assert sum(abs(k) * weight <= half for k in range(-last, last + 1)) >= 0.95 * (2 * last + 1)
