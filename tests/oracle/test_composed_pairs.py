"""Finite pairs composed by brute force in exact fractions: the bracket holds the truth, both directions."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import tightrope as tr
from tests.oracle.exact import Pair, composed, exponential, pair, profile, sampled, swapped, worse_profile

PHASES = [Phase.explicit, Phase.reuse, Phase.generate]  # brute force and the grid are too slow to shrink with
EPSILONS = [-5.0, -1.0, -0.3, 0.0, 0.2, 1.0, 2.7, 9.0]


@st.composite
def dyadic_laws(draw: st.DrawFn, outcomes: int, zeros: bool = False) -> list[Fraction]:
    """Multiples of 2⁻²⁰ that sum to one: exact as floats."""
    whole, least = 1 << 20, 0 if zeros else 1
    cuts = sorted(draw(st.lists(st.integers(1, whole - 1), min_size=outcomes - 1, max_size=outcomes - 1)))
    parts = [b - a for a, b in zip([0, *cuts], [*cuts, whole], strict=True)]
    parts = [max(part, least) for part in parts]
    parts[parts.index(max(parts))] -= sum(parts) - whole
    return [Fraction(part, whole) for part in parts]


@st.composite
def pairs(draw: st.DrawFn) -> Pair:
    outcomes, zeros = draw(st.integers(2, 4)), draw(st.booleans())
    return pair(draw(dyadic_laws(outcomes, zeros)), draw(dyadic_laws(outcomes, zeros)))


def loss_of(law: Pair) -> tr.PrivacyLoss:
    return tr.from_pair([float(p) for p, _ in law], [float(q) for _, q in law]).loss


def check(loss: tr.PrivacyLoss, epsilon: float, truth: Fraction, width: float) -> None:
    lower, upper = loss.delta_bounds(epsilon)
    assert lower <= truth <= upper, (loss.method, epsilon, lower, float(truth), upper)
    assert upper - lower <= width * float(truth) + 1e-14, (loss.method, epsilon, lower, float(truth), upper)


@settings(max_examples=20, phases=PHASES)
@given(pairs(), st.integers(1, 3), st.sampled_from(EPSILONS))
def test_copies_of_a_pair(law: Pair, count: int, epsilon: float) -> None:
    check(count * loss_of(law), epsilon, worse_profile([law] * count, epsilon), 1e-3)


@settings(max_examples=15, phases=PHASES)
@given(pairs(), pairs(), st.sampled_from(EPSILONS))
def test_two_different_pairs(first: Pair, second: Pair, epsilon: float) -> None:
    check(loss_of(first) + loss_of(second), epsilon, worse_profile([first, second], epsilon), 1e-3)


RATES = [Fraction(1, 2), Fraction(1, 16), Fraction(1, 1024), Fraction(1, 1 << 20)]


@settings(max_examples=20, phases=PHASES)
@given(pairs(), st.sampled_from(RATES), st.integers(1, 2), st.sampled_from(EPSILONS))
def test_poisson_sampling_in_both_directions(law: Pair, rate: Fraction, count: int, epsilon: float) -> None:
    """Remove compares (1−r)A + rB with A, add compares A with (1−r)A + rB: each composed, then the worse."""
    gamma = exponential(epsilon)
    removed = profile(composed([sampled(law, rate, remove=True)] * count), gamma)
    added = profile(composed([sampled(swapped(law), rate, remove=False)] * count), gamma)
    check(count * loss_of(law).poisson_sample(float(rate)), epsilon, max(removed, added), 1e-2)


@pytest.mark.parametrize(("wide", "fine"), [(1.0, 1e-5), (0.5, 0.001)])
@pytest.mark.parametrize("epsilon", [-3.0, 0.0, 0.3, 0.9])
def test_a_lattice_that_is_much_finer_than_its_widest_law(wide: float, fine: float, epsilon: float) -> None:
    """Losses 10⁵ and more lattice steps out: the phases of the transform must not lose digits."""
    laws = [[(g / (1 + g), 1 / (1 + g)), (1 / (1 + g), g / (1 + g))] for g in map(exponential, (wide, fine))]
    loss = tr.approx_dp(wide).loss + tr.approx_dp(fine).loss
    lower, upper = loss.delta_bounds(epsilon)
    truth = worse_profile(laws, epsilon)
    assert loss.method == "lattice"
    assert lower <= truth <= upper
    assert upper - lower <= 1e-9 * float(truth) + 1e-300
