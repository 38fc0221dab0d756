"""No channel exceeds the suprema, and the channels that should attain them do."""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np
import pytest
from mpmath import mp

from tests.channels.random_channels import channel, exact_triple, law
from tightrope.channels import Channel, suprema
from tightrope.channels.extremal import binary_with_erasure, dominating_channel, three_input_channel
from tightrope.documents import Guarantee
from tightrope.errors import InputError

CHANNELS = int(os.environ.get("TIGHTROPE_CHANNELS", "2000"))
"""Random channels; 10 000 take a minute."""

ROUNDING = 1 + 1e-11
TRIPLES = [
    Guarantee(1.0, 0.05, 0.3),
    Guarantee(1.0),
    Guarantee(0.1, 0.0, 0.02),
    Guarantee(4.0, 1e-3),
    Guarantee(0.0, 0.2),
]
PURE = [Guarantee(1.0), Guarantee(1.0, 0.0, 0.3), Guarantee(0.1, 0.0, 0.02), Guarantee(3.0, 0.0, 0.8)]
FINITE = ("total_variation", "hellinger")


def check_contraction(made: Channel, triple: Guarantee, p0: np.ndarray, p1: np.ndarray) -> None:
    """κ, η and φ bound what gets through, in this order."""
    still = Channel(np.eye(made.input_count))
    kappa = suprema.kl_contraction(triple)
    assert made.kl_contraction <= kappa * ROUNDING + 1e-15
    assert kappa <= suprema.contraction(triple) * ROUNDING <= suprema.printed_contraction(triple) * ROUNDING**2
    for name, factor in [("kl", kappa), ("chi_squared", kappa), ("hellinger", kappa), ("total_variation", 1.0)]:
        bound = min(factor, suprema.contraction(triple))
        assert made.output_divergence(name, p0, p1) <= bound * still.output_divergence(name, p0, p1) * ROUNDING + 1e-15


def check_rows(made: Channel, triple: Guarantee) -> None:
    first, second = np.eye(made.input_count)[:2]
    for name in FINITE if triple.delta > 0 else (*FINITE, "kl", "reverse_kl", "chi_squared"):
        bound = suprema.divergence_of_rows(name, triple)
        assert made.output_divergence(name, first, second) <= bound * ROUNDING + 1e-15


def check_outputs(made: Channel, triple: Guarantee, p0: np.ndarray, p1: np.ndarray) -> None:
    """The triple of the outputs, and what follows from it."""
    t = Channel([p0, p1]).total_variation
    pair, bound = Channel([p0 @ made.matrix, p1 @ made.matrix]), suprema.between_outputs(triple, t)
    assert pair.total_variation <= bound.total_variation * ROUNDING + 1e-15
    assert pair.profile(bound.epsilon) <= bound.delta * ROUNDING + 1e-15
    if triple.delta == 0:
        kl, reverse = made.output_divergence("kl", p0, p1), made.output_divergence("reverse_kl", p0, p1)
        chi = made.output_divergence("chi_squared", p0, p1)
        assert max(kl, reverse) <= suprema.kl_bound(triple, t) * ROUNDING + 1e-15
        assert kl + reverse <= suprema.jeffreys_bound(triple, t) * ROUNDING + 1e-15
        assert chi <= suprema.chi_squared(triple, t) * ROUNDING + 1e-15


@pytest.mark.slow
def test_random_channels_stay_below_the_suprema() -> None:
    """Each inside its own triple: at its whole loss range, δ = 0, every third; at an ε within it, δ > 0, the others."""
    rng = np.random.default_rng(20_251)
    with_delta = pure = 0
    for turn in range(CHANNELS):
        made = channel(rng)
        p0, p1 = law(rng, made.input_count), law(rng, made.input_count)
        largest = made.epsilon
        whole = turn % 3 == 0 and largest < math.inf
        epsilon = largest * (1 + 1e-14) if whole else min(largest, 6.0) * rng.random()
        triple = Guarantee(epsilon, 0.0, made.total_variation) if whole else exact_triple(made, epsilon)
        with_delta, pure = with_delta + (triple.delta > 0), pure + (triple.delta == 0)
        check_contraction(made, triple, p0, p1)
        check_rows(made, triple)
        check_outputs(made, triple, p0, p1)
    assert with_delta > 0.6 * CHANNELS
    assert pure > 0.15 * CHANNELS


@pytest.mark.parametrize("triple", TRIPLES)
def test_the_dominating_channel_attains_every_supremum_over_rows(triple: Guarantee) -> None:
    best = dominating_channel(triple)
    assert best.kl_contraction == pytest.approx(suprema.kl_contraction(triple), rel=1e-12)
    assert best.total_variation == pytest.approx(suprema.contraction(triple), rel=1e-12)
    assert best.contraction(math.exp(triple.epsilon)) == pytest.approx(triple.delta, abs=1e-15)
    for name in FINITE:
        assert best.output_divergence(name, [1, 0], [0, 1]) == pytest.approx(
            suprema.divergence_of_rows(name, triple), rel=1e-12
        )
    if triple.delta == 0:
        for name in ("kl", "reverse_kl", "chi_squared"):
            reached = best.output_divergence(name, [1, 0], [0, 1])
            assert reached == pytest.approx(suprema.divergence_of_rows(name, triple), rel=1e-12)


@pytest.mark.parametrize("triple", TRIPLES)
def test_the_binary_mechanism_with_erasure_attains_proposition_2(triple: Guarantee) -> None:
    rng = np.random.default_rng(7)
    for size in (2, 3, 9):
        p0, p1 = law(rng, size), law(rng, size)
        t = Channel([p0, p1]).total_variation
        made = binary_with_erasure(p0, p1, triple)
        assert made.output_divergence("total_variation", p0, p1) == pytest.approx(
            suprema.total_variation(triple, t), rel=1e-12
        )
        assert made.total_variation == pytest.approx(triple.total_variation, rel=1e-12)


@pytest.mark.parametrize("triple", [Guarantee(1.0, 0.0, 0.3), Guarantee(0.1, 0.0, 0.02), Guarantee(3.0, 0.0, 0.8)])
@pytest.mark.parametrize("t", [1e-3, 0.2, 1.0])
def test_three_inputs_attain_the_bounds_between_outputs(triple: Guarantee, t: float) -> None:
    best = three_input_channel(triple)
    assert best.epsilon == pytest.approx(triple.epsilon, rel=1e-12)
    assert best.total_variation == pytest.approx(triple.total_variation, rel=1e-12)
    p0, p1 = [t, 0, 1 - t], [0, t, 1 - t]
    bound = suprema.between_outputs(triple, t)
    pair = Channel([np.array(p0) @ best.matrix, np.array(p1) @ best.matrix])
    assert pair.epsilon == pytest.approx(bound.epsilon, rel=1e-9)
    assert pair.total_variation == pytest.approx(bound.total_variation, rel=1e-9)
    for name, limit in [("kl", suprema.kl_bound), ("chi_squared", suprema.chi_squared)]:
        assert best.output_divergence(name, p0, p1) == pytest.approx(limit(triple, t), rel=1e-9)


def test_the_largest_third_way_is_ternary_randomized_response() -> None:
    ratio = math.e
    best = three_input_channel(Guarantee(1.0, 0.0, (ratio - 1) / (ratio + 2)))
    assert best.matrix == pytest.approx(np.where(np.eye(3) > 0, ratio, 1.0) / (ratio + 2), rel=1e-12)
    with pytest.raises(InputError, match="total_variation"):
        three_input_channel(Guarantee(1.0))
    with pytest.raises(InputError, match="delta"):
        three_input_channel(Guarantee(1.0, 0.01, 0.02))


@pytest.mark.parametrize("triple", PURE)
@pytest.mark.parametrize("t", [0.0, 1e-6, 0.1, 0.7, 1.0])
def test_sharper_means_at_most_what_is_printed(triple: Guarantee, t: float) -> None:
    growth = math.expm1(triple.epsilon)
    assert suprema.chi_squared(triple, t) <= 2 * triple.total_variation * growth * t * t * ROUNDING
    assert suprema.jeffreys_bound(triple, t) <= 2 * triple.total_variation * growth * t * t * ROUNDING
    assert suprema.chi_squared(triple, t) <= suprema.printed_chi_squared(triple, t) * ROUNDING
    assert suprema.jeffreys_bound(triple, t) <= suprema.printed_jeffreys(triple, t) * ROUNDING


@pytest.mark.parametrize("triple", TRIPLES)
@pytest.mark.parametrize("people", [1, 2, 7])
def test_many_people(triple: Guarantee, people: int) -> None:
    assert suprema.contraction(triple, people) == pytest.approx(1 - (1 - triple.total_variation) ** people, rel=1e-12)
    kappa = suprema.kl_contraction(triple)
    assert suprema.kl_contraction(triple, people) == pytest.approx(1 - (1 - kappa) ** people, rel=1e-12)
    printed = 1 - math.exp(-people * triple.epsilon) * (1 - triple.delta) ** people
    assert suprema.printed_contraction(triple, people) == pytest.approx(printed, rel=1e-12)


def test_products_contract_by_no_more_than_the_tensorised_coefficients() -> None:
    rng = np.random.default_rng(3)
    for _ in range(100):
        rows = rng.dirichlet(np.full(3, 1.0), 2)
        one = Channel(rows)
        two, three = one.product_with(one), one.product_with(one).product_with(one)
        for people, many in ((2, two), (3, three)):
            assert many.kl_contraction <= (1 - (1 - one.kl_contraction) ** people) * ROUNDING
            assert many.total_variation <= (1 - (1 - one.total_variation) ** people) * ROUNDING


def test_the_binary_mechanism_has_its_share_of_every_rival() -> None:
    """2η/(e^ε−1) of the KL of any channel of the class, on random rivals."""
    rng = np.random.default_rng(11)
    for _ in range(300):
        made = channel(rng)
        if made.epsilon == math.inf:
            continue
        triple = Guarantee(made.epsilon * (1 + 1e-14), 0.0, made.total_variation * (1 + 1e-14))
        p0, p1 = law(rng, made.input_count), law(rng, made.input_count)
        ours = binary_with_erasure(p0, p1, triple).output_divergence("kl", p0, p1)
        assert (
            ours >= suprema.binary_share_of_best_kl(triple) * made.output_divergence("kl", p0, p1) * (1 - 1e-11) - 1e-15
        )


def test_erasure_keeps_its_share() -> None:
    pure, limited = Guarantee(1.0), Guarantee(1.0, 0.0, 0.1)
    share = suprema.share_kept_by_erasure(limited)
    best = dominating_channel(pure)
    kept = best.erase(1 - share)
    assert kept.total_variation == pytest.approx(0.1, rel=1e-12)
    for name in ("kl", "chi_squared", "hellinger"):
        whole = best.output_divergence(name, [0.7, 0.3], [0.2, 0.8])
        assert kept.output_divergence(name, [0.7, 0.3], [0.2, 0.8]) == pytest.approx(share * whole, rel=1e-12)


def test_infinite_epsilon_and_wrong_classes() -> None:
    free = Guarantee(math.inf, 0.0, 0.25)
    assert suprema.kl_contraction(free) == pytest.approx(0.25, rel=1e-15)
    assert suprema.between_outputs(free, 0.5).epsilon == math.inf
    assert suprema.kl_bound(free, 0.5) == math.inf
    assert suprema.divergence_of_rows("hellinger", free) == pytest.approx(0.5)
    assert suprema.divergence_of_rows("kl", Guarantee(math.inf, 0.0, 0.0)) == 0
    assert suprema.divergence_of_rows("hellinger", Guarantee(699.0, 0.0, 0.25)) <= 0.5
    assert suprema.binary_share_of_best_kl(Guarantee(math.inf)) == 0
    assert suprema.binary_share_of_best_kl(Guarantee(0.0)) == suprema.share_kept_by_erasure(Guarantee(0.0)) == 1
    assert suprema.kl_bound(Guarantee(1.0, 0.1), 0.5) == math.inf
    assert suprema.kl_bound(Guarantee(1.0, 0.1), 0.0) == 0
    for printed in (suprema.printed_chi_squared, suprema.printed_jeffreys):
        with pytest.raises(InputError, match="pure local privacy"):
            printed(Guarantee(1.0, 0.1), 0.5)
    with pytest.raises(InputError, match="distance"):
        suprema.kl_bound(Guarantee(1.0), 1.5)
    with pytest.raises(InputError, match="people"):
        suprema.contraction(Guarantee(1.0), 0)


def test_the_example_of_the_theory() -> None:
    triple = Guarantee(1.0, 0.05, 0.3)
    assert suprema.kl_contraction(triple) == pytest.approx(0.165529, abs=5e-7)
    assert suprema.printed_contraction(triple) == pytest.approx(0.650515, abs=5e-7)


@pytest.mark.parametrize("epsilon", [1e-9, 0.5, 1.5, 2.0, 5.0, 30.0, 699.0, 705.0, 2000.0])
@pytest.mark.parametrize("t", [1e-300, 1e-17, 1e-12, 1e-9, 0.3, 1.0])
def test_the_output_triple_is_never_below_the_truth_however_close_the_inputs(epsilon: float, t: float) -> None:
    """log(1 + t(e^ε − 1)) in a thousand digits: no cancellation at small t."""
    made = suprema.between_outputs(Guarantee(epsilon), t)
    with mp.workdps(1000):
        truth = mp.log1p(mp.mpf(t) * mp.expm1(mp.mpf(epsilon)))
        assert truth <= made.epsilon <= truth * (1 + 1e-14)
    assert suprema.between_outputs(Guarantee(epsilon), 0.0).epsilon == 0


@pytest.mark.parametrize("epsilon", [1e-12, 1e-6, 1e-3, 1.0, 20.0, 600.0])
@pytest.mark.parametrize(
    ("name", "f"),
    [
        ("reverse_kl", lambda t: t - 1 - mp.log(t)),
        ("total_variation", lambda t: abs(t - 1) / 2),
        ("chi_squared", lambda t: (t - 1) ** 2),
        ("hellinger", lambda t: (mp.sqrt(t) - 1) ** 2),
    ],
)
def test_the_supremum_over_rows_has_all_digits_at_small_epsilon(epsilon: float, name: str, f: Any) -> None:
    triple = Guarantee(epsilon)
    with mp.workdps(600):
        ratio = mp.exp(mp.mpf(epsilon))
        truth = float(triple.total_variation * (f(ratio) / ratio + f(1 / ratio)) / (1 - 1 / ratio))
    assert suprema.divergence_of_rows(name, triple) == pytest.approx(truth, rel=1e-14)
