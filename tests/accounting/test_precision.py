"""Brackets fall, ε inverts δ on one and the same bracket, and a wide bracket says so."""

from __future__ import annotations

import copy
import math
import pickle
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tightrope as tr
from tightrope.accounting.curves import MonotoneBrackets
from tightrope.errors import PrecisionWarning

G, L, T = tr.gaussian(scale=1).loss, tr.laplace(scale=1).loss, tr.approx_dp(1, delta=1e-6).loss
ENGINES = {
    "closed form": G,
    "recurrence": 10 * T,
    "lattice": T + tr.approx_dp(0.5).loss,
    "enumeration": T + tr.approx_dp(0.314).loss,
    "exact sum": 3 * L,
    "contour": 1000 * G.poisson_sample(0.01),
    "contour with tails apart": 10_000 * tr.gaussian(scale=2).loss.poisson_sample(1e-4),
    "grid": 2 * G.poisson_sample(0.2) + L,
}
DELTAS = [0.3, 1e-3, 1e-6, 1e-10]


@pytest.mark.parametrize("name", ENGINES)
def test_epsilon_inverts_delta(name: str) -> None:
    loss = ENGINES[name]
    for delta in (delta for delta in DELTAS if delta > loss.infinite_mass):
        epsilon = loss.epsilon(delta)
        assert loss.delta(epsilon) <= delta
        lower = loss.epsilon_bounds(delta).lower
        assert lower <= epsilon
        assert lower == 0 or loss.delta_bounds(lower).lower >= delta * (1 - 1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_epsilon_inverts_delta_for_sums_of_laplaces(seed: int) -> None:
    rng = np.random.default_rng(seed)
    loss = sum(
        (int(rng.integers(1, 4)) * tr.laplace(scale=float(rng.choice([0.7, 1.0, 2.0]))).loss for _ in range(2)), 0 * L
    )
    for delta in (1e-3, 1e-8):
        assert loss.delta(loss.epsilon(delta)) <= delta


@pytest.mark.parametrize("name", ENGINES)
def test_neither_end_rises(name: str) -> None:
    """In whatever order it is asked: coarse steps, steps of some ulps, single numbers and arrays."""
    loss = ENGINES[name]
    rng = np.random.default_rng(7)
    center = loss.epsilon(1e-5)
    asked = np.concatenate(
        [rng.uniform(0, 2 * center + 0.1, 12), center * (1 + 1e-15 * rng.integers(-20, 20, 12)), [0.0, center]]
    )
    for epsilon in rng.permutation(asked).tolist():
        loss.delta(epsilon)
    bounds = loss.delta_bounds(np.sort(asked))
    assert np.all(np.diff(bounds.upper) <= 0)
    assert np.all(np.diff(bounds.lower) <= 0)
    assert np.all(bounds.lower <= bounds.upper)


def test_no_bound_rises_where_only_the_tail_is_left() -> None:
    """The regime in which Chernoff's bound used to rise."""
    loss = 109_375 * tr.gaussian(scale=1).loss.poisson_sample(32 / 3.5e6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrecisionWarning)
        upper = loss.delta(np.linspace(0.005, 0.2, 40))
    assert np.all(np.diff(upper) <= 0)


def test_a_wide_bracket_warns_and_says_why() -> None:
    loss = 109_375 * tr.gaussian(scale=2).loss.poisson_sample(32 / 3.5e6)
    with pytest.warns(
        PrecisionWarning, match=r"only known to lie in .* by the method .*Chernoff.*: .*the integra(l|nd) "
    ):
        loss.delta(0.1)
    assert "Chernoff" in loss.method


def test_what_was_answered_is_answered_again() -> None:
    falling = MonotoneBrackets()
    for epsilon, low, high in ((1.0, 0.1, 0.2), (0.5, 0.05, 0.15), (1.0, 0.0, 1.0)):
        falling.insert_brackets(np.array([epsilon]), np.array([low]), np.array([high]))
        assert [end.tolist() for end in falling.brackets_at(np.array([epsilon]))] == [[0.1], [0.2]]
    assert falling.missing_epsilons(np.array([1.0, 0.7, 0.5, 0.7])).tolist() == [0.7]
    assert falling.missing_epsilons(np.array([-0.0, 0.0])).tolist() == [0.0]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.lists(st.integers(0, 40), min_size=1, max_size=12, unique=True), min_size=1, max_size=6), st.data())
def test_whatever_is_asked_together_falls_and_holds_the_truth(batches: list[list[int]], data: st.DataObject) -> None:
    """Brackets of any width around e^−ε: narrowed by what others know, never changed once they were told."""
    falling, told = MonotoneBrackets(), {}
    for batch in batches:
        at = np.array(sorted(batch), dtype=float) / 10
        widths = data.draw(st.lists(st.floats(0, 0.3), min_size=2 * len(at), max_size=2 * len(at)))
        below, above = np.array(widths).reshape(2, -1)
        falling.insert_brackets(at, np.exp(-at) - below, np.exp(-at) + above)
        told |= {e: ends for e, *ends in zip(at.tolist(), *falling.brackets_at(at), strict=True) if e not in told}
        low, high = falling.brackets_at(every := np.array(sorted(told)))
        assert [[*ends] for ends in zip(low, high, strict=True)] == [told[e] for e in every.tolist()]
        assert np.all(low <= np.exp(-every)) and np.all(high >= np.exp(-every))
        assert np.all(np.diff(low) <= 0) and np.all(np.diff(high) <= 0)


def test_a_copy_knows_nothing_yet() -> None:
    falling = MonotoneBrackets()
    at = np.array([1.0])
    falling.insert_brackets(at, np.array([0.1]), np.array([0.2]))
    restored = pickle.loads(pickle.dumps(falling))  # noqa: S301 - written here
    assert restored.missing_epsilons(at).tolist() == copy.deepcopy(falling).missing_epsilons(at).tolist() == [1.0]
    assert falling.missing_epsilons(at).tolist() == []


def test_an_epsilon_far_out_is_found() -> None:
    """Beyond 10⁷ nats, where the search once ended."""
    bounds = tr.gaussian(scale=2e-4).loss.epsilon_bounds(1e-5)
    assert 1.25e7 < bounds.lower <= bounds.upper < 1.26e7


@pytest.mark.parametrize("scale", [1e7, 1e8])
def test_noise_that_hides_nearly_everything_needs_little_memory(scale):
    """The sum is nearly Gaussian, with a deviation of 2.5e-8 nats or less; other methods would need gigabytes."""
    rate, steps = 256 / 60_000, 3515
    loss = steps * tr.gaussian(scale=scale).loss.poisson_sample(rate)
    deviation = rate * math.sqrt(steps) / scale
    bounds = loss.delta_bounds(0.0)
    assert math.isclose(bounds.lower, deviation / math.sqrt(2 * math.pi), rel_tol=1e-3)
    assert bounds.lower <= bounds.upper <= bounds.lower * (1 + 1e-4)
    assert 1e-4 < loss.true_positive_rate(1e-4) <= 1e-4 + deviation
