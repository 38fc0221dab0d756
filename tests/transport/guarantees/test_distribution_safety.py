"""Every bound is on the safe side: against rationals, at the vertices of what is allowed, and where doubles end."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tightrope import discrete_laplace
from tightrope.errors import InputError
from tightrope.transport.couplings.mechanism import CouplingMechanism
from tightrope.transport.exact.plan import ExactDistribution
from tightrope.transport.guarantees.distribution_checks import distribution_privacy, extended_distribution_privacy
from tightrope.transport.guarantees.divergences import EXACT_DIVERGENCES, DistributionGuarantee, divergence_upper_bound
from tightrope.transport.guarantees.learned_distributions import (
    OneDraw,
    approximate_knowledge,
    learn_laws,
    learn_laws_privately,
    one_draw,
)

Shares = list[Fraction]
RANDOM = np.random.default_rng(17)


# Divergences below the doubles.


@pytest.mark.parametrize("name", list(EXACT_DIVERGENCES))
@pytest.mark.parametrize("digits", [160, 200, 320, 400])
def test_divergences_of_next_to_nothing_are_not_nothing(name: str, digits: int) -> None:
    tiny = Fraction(1, 10**digits)
    found = divergence_upper_bound(name, [1 - tiny, tiny], [1 - tiny / 2, tiny / 2])
    least = {"hellinger": Fraction(8, 100), "max": Fraction(69, 100) / tiny}.get(name, Fraction(15, 100)) * tiny
    assert Fraction(found) >= least
    assert divergence_upper_bound(name, [1 - tiny, tiny], [1 - tiny, tiny]) == 0


def test_an_approximate_maximum_of_next_to_nothing() -> None:
    tiny = Fraction(1, 10**400)
    half = Fraction(1, 2)
    assert divergence_upper_bound("approximate_max", [half + tiny, half - tiny], [half, half], delta=0.0) > 0


# The rules.


def test_one_input_carries_the_largest_divergence_by_the_worst_distance_only() -> None:
    """Two maps of a bit that need 1 each by W_1: together 3, so that 1 + 1 by W_1 is false; by W_∞ it holds."""
    one = np.array([[0.5, 0.5], [0.75, 0.25]])
    both = np.einsum("xa,xb->xab", one, one).reshape(2, 4)
    unit = [[0, 1], [1, 0]]
    steps = np.linspace(0, 1, 21)
    pairs = [([s, 1 - s], [t, 1 - t]) for s in steps for t in steps if s != t]
    needed, together = (extended_distribution_privacy(part, pairs, "max", unit).epsilon for part in (one, both))
    assert needed <= 1
    assert together > 2
    guarantee = DistributionGuarantee(1.0, "max", "W1", points=True)
    combined = guarantee.with_same_input(guarantee)
    assert combined.metric == "Winf"
    assert extended_distribution_privacy(both, pairs, "max", unit, p=math.inf).epsilon <= combined.epsilon


@given(st.floats(0, 1e6), st.floats(0, 1e6), st.integers(0, 1000))
def test_sums_and_multiples_are_rounded_up(first: float, second: float, steps: int) -> None:
    one, other = (DistributionGuarantee(value, "max", points=True) for value in (first, second))
    total = Fraction(first) + Fraction(second)
    for added in (one.with_same_input(other).epsilon, one.with_fresh_input(other).epsilon):
        assert total <= Fraction(added) <= total * (1 + Fraction(1, 2**51))
    scaled = Fraction(one.pre_process(steps).epsilon)
    assert steps * Fraction(first) <= scaled <= steps * Fraction(first) * (1 + Fraction(1, 2**51)) + Fraction(5e-324)


def test_a_small_part_of_a_sum_is_not_lost() -> None:
    small, large = (DistributionGuarantee(value, "kl", points=True) for value in (1e-20, 1.0))
    assert small.with_same_input(large).epsilon > 1
    assert large.with_same_input(small).epsilon > 1


# The theorem, in rationals, at the vertices of what D_∞ ≤ ε allows.


def vertices(law: Shares, ratio: Fraction) -> list[Shares]:
    """All laws with every point but one at λ̂/r or λ̂ r, the one between."""
    found = []
    for free in range(len(law)):
        for factors in product((1 / ratio, ratio), repeat=len(law) - 1):
            moved = [x * f for x, f in zip(law[:free] + law[free + 1 :], factors, strict=True)]
            rest = 1 - sum(moved)
            if law[free] / ratio <= rest <= law[free] * ratio:
                found.append([*moved[:free], rest, *moved[free:]])
    return found


def pushed(law: Shares, channel: list[Shares]) -> Shares:
    return [sum((x * row[y] for x, row in zip(law, channel, strict=True)), Fraction(0)) for y in range(len(channel[0]))]


def random_coupling(rng: np.random.Generator, size: int) -> tuple[Shares, list[Shares], Shares]:
    table = [[Fraction(int(w)) for w in row] for row in rng.integers(0, 20, (size, size))]
    for x in range(size):
        table[x][x] += 1
    total = sum(map(sum, table), Fraction(0))
    rows = [sum(row, Fraction(0)) for row in table]
    channel = [[w / rows[x] for w in row] for x, row in enumerate(table)]
    return (
        [row / total for row in rows],
        channel,
        [sum(column, Fraction(0)) / total for column in zip(*table, strict=True)],
    )


def variation(p: Shares, q: Shares) -> Fraction:
    return sum((abs(a - b) for a, b in zip(p, q, strict=True)), Fraction(0)) / 2


def test_the_theorem_holds_at_the_vertices() -> None:
    """Both groups have the same target: one coupling, and the identity on that target's law."""
    rng, tried, nearest = np.random.default_rng(3), 0, 0.0
    for _ in range(120):
        law, channel, target = random_coupling(rng, int(rng.integers(2, 4)))
        ratio = 1 + Fraction(int(rng.integers(1, 200)), 100)
        epsilon = math.nextafter(math.log(ratio), math.inf)
        identity = [[Fraction(int(x == y)) for y in range(len(target))] for x in range(len(target))]
        for first, second in product(vertices(law, ratio), vertices(target, ratio)):
            apart = (float(variation(law, first)) * (1 + 1e-15), float(variation(target, second)) * (1 + 1e-15))
            bound = one_draw(epsilon=epsilon, total_variations=apart)
            p, q = pushed(first, channel), pushed(second, identity)
            for name in EXACT_DIVERGENCES:
                seen = max(divergence_upper_bound(name, p, q), divergence_upper_bound(name, q, p)) * (1 - 1e-12)
                assert seen <= bound.divergence_bound(name), name
            tried, nearest = tried + 1, max(nearest, float(variation(p, q)) / bound.total_variation)
    assert tried > 1000
    assert nearest > 0.95


def test_a_target_of_tiny_masses_pays_for_the_rounding_of_its_tables() -> None:
    """With μ(y) near 2⁻¹²⁸ the tables of two groups have another ratio there: it is in ε, or its mass is in δ."""
    for mass in (2e-38, 1e-39, 1e-60):
        laws = {"a": [0.5, 0.3, 0.2], "b": [0.1, 0.2, 0.7]}
        mechanism = CouplingMechanism.fit(laws, [[0, 1, 2], [1, 0, 1], [2, 1, 0]], target=[mass, 0.5, 0.5])
        for actual in (laws, {"a": [0.5, 0.5, 0.0], "b": [0.1, 0.2, 0.7]}, {"a": [0.45, 0.35, 0.2], "b": laws["b"]}):
            bound = approximate_knowledge(mechanism, actual)
            sides = [(("a", actual["a"]), ("b", actual["b"]))]
            assert (
                distribution_privacy(mechanism, sides, "total_variation").epsilon * (1 - 1e-13) <= bound.total_variation
            )
            needed = distribution_privacy(mechanism, sides, "approximate_max", delta=bound.delta).epsilon
            assert needed * (1 - 1e-13) <= bound.epsilon


def test_where_doubles_end() -> None:
    assert one_draw(epsilon=800, deltas=(0.0, 1e-320)).delta == 1
    assert OneDraw(800.0, 0.0, 1.0).divergence_bound("chi_squared") == math.inf
    mechanism = CouplingMechanism.fit({"a": [0.5, 0.5], "b": [0.25, 0.75]}, [[0, 1], [1, 0]])
    far = approximate_knowledge(mechanism, {"a": [1e-300, 1.0], "b": [0.25, 0.75]})
    assert far.divergence_bound("chi_squared") == math.inf
    assert far.loss.total_variation() >= 0.5
    with pytest.raises(InputError, match=r"each of 2 points.*distribution of 'a'"):
        approximate_knowledge(mechanism, {"a": [1.0], "b": [0.25, 0.75]})


# Distances between laws that are nearly equal.


def test_a_distance_near_rounding_is_not_trusted() -> None:
    """The laws in floats are not the exact ones: what that moves is taken off before a distance divides."""
    channel = [[0.9, 0.1], [0.1, 0.9]]
    for off in (1e-16, 3e-16, 1e-15, 1e-14, 1e-13):
        first, second = [0.3, 0.7], [0.3 + off, 0.7]
        laws = [ExactDistribution.from_probabilities("law", side) for side in (first, second)]
        distance = abs(laws[0][0] - laws[1][0])
        apart = distribution_privacy(channel, [(first, second)], "total_variation").epsilon
        found = extended_distribution_privacy(channel, [(first, second)], "total_variation", [[0, 1], [1, 0]]).epsilon
        assert found == math.inf or Fraction(found) * distance >= Fraction(apart) * (1 - Fraction(1, 10**12))
    pair = [([0.5, 0.5], [0.3, 0.7])]
    assert extended_distribution_privacy(channel, pair, "approximate_max", [[0, 1], [1, 0]], delta=0.9).epsilon == 0


# Learned laws.


def exactly(law: np.ndarray, bound: np.ndarray, factor: mpmath.mpf, sign: int) -> mpmath.mpf:
    """Σ (u − e^ε λ̂)₊, or Σ (λ̂ − e^ε l)₊, for the law that the mechanism takes the floats for."""
    exact = ExactDistribution.from_probabilities("law", law)
    shares = [mpmath.mpf(exact.masses[x]) / exact.total for x in range(len(exact))]
    ends = [mpmath.mpf(float(x)) for x in bound]
    terms = ((u - factor * x if sign > 0 else x - factor * u) for x, u in zip(shares, ends, strict=True))
    return mpmath.fsum(max(term, mpmath.mpf(0)) for term in terms)


@given(
    st.lists(st.integers(0, 10**9), min_size=2, max_size=30), st.floats(0, 0.5), st.sampled_from([1e-300, 1e-3, 1.0])
)
def test_the_deltas_of_learned_laws_are_rounded_up(counts: list[int], epsilon: float, smoothing: float) -> None:
    if not sum(counts):
        return
    learned = learn_laws({"a": counts}, smoothing=smoothing).groups["a"]
    seen = float(np.max(np.log(learned.upper / np.maximum(learned.law, 1e-300))))
    with mpmath.workdps(60):
        for value in (epsilon, max(0.0, math.nextafter(seen, 0)), max(0.0, seen)):
            above, below = learned.max_divergence_deltas(value)
            factor = mpmath.exp(mpmath.mpf(value))
            assert min(exactly(learned.law, learned.upper, factor, 1), 1) <= above
            assert exactly(learned.law, learned.lower, factor, -1) <= below


def test_large_epsilons_and_odd_settings_of_learning() -> None:
    learned = learn_laws({"a": [500, 500], "b": [1, 1]})
    assert learned.one_draw(800).delta == 1 or learned.one_draw(800).epsilon == 1600
    assert all(0 <= delta <= 1 for delta in learned.groups["a"].max_divergence_deltas(800))
    with pytest.raises(InputError, match="less than 2"):
        learn_laws({"a": np.array([2**63 + 5, 5], dtype=np.uint64)})
    with pytest.raises(InputError, match="failure"):
        learn_laws_privately({"a": [5, 5]}, discrete_laplace(scale=2), failure=1e-17)
    with pytest.raises(InputError, match=r"noise=3.*discrete_laplace"):
        learn_laws_privately({"a": [5, 5]}, 3)  # type: ignore[arg-type]
