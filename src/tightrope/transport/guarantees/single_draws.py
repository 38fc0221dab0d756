"""Guarantees for one draw of a coupling mechanism with approximately known distributions (theory §6, KM Thm 3).

``docs/proofs/transport.md`` has the corrected argument.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from numpy.typing import ArrayLike

from tightrope.accounting.privacy_loss import PrivacyLoss
from tightrope.errors import InputError
from tightrope.mechanisms.pairs import approx_dp
from tightrope.numerics.checks import check_non_negative, check_probability
from tightrope.numerics.divergences import INFINITE_EPSILON, NAMED
from tightrope.transport.couplings.mechanism import CouplingMechanism
from tightrope.transport.exact.plan import ExactDistribution
from tightrope.transport.guarantees.distribution_checks import distribution_privacy
from tightrope.transport.guarantees.divergences import divergence_upper_bound as divergence_of
from tightrope.transport.guarantees.divergences import round_up


@dataclass(frozen=True, slots=True)
class OneDraw:
    """Any two groups' outputs are (ε, δ)-indistinguishable with total variation η: a bound for **one draw per value**.

    ``loss`` composes over independent draws only: other people's values, or a value that was itself drawn anew. Draws
    for the *same* value are not independent given the group, and no multiple of this loss covers them: with exactly
    known distributions (ε = η = 0), k draws for one value can have total variation 1 − 2^{1−k} (theory §6). Release a
    value once, or let ``apply`` remember it (``person``).
    """

    epsilon: float
    delta: float
    total_variation: float

    @property
    def loss(self) -> PrivacyLoss:
        """The dominating pair of the triple (ε, δ, η); neighbors: another group, with everything else fixed."""
        return approx_dp(self.epsilon, delta=self.delta, total_variation=self.total_variation).loss

    def divergence_bound(self, name: str) -> float:
        """Return an upper bound on an f-divergence of two groups' outputs; ∞ if δ > 0 and f is unbounded.

        η (f(e^ε) + e^ε f(e^{−ε})) / (e^ε − 1): εη for both "kl" and "reverse_kl", 2η sinh ε for "chi_squared", 2η
        tanh(ε/4) for "hellinger", η for "total_variation"; ε for "max". With δ > 0, 2η for "hellinger". Raises
        ``InputError`` for another name.

        >>> round(OneDraw(0.2, 0.0, 0.05).divergence_bound("kl"), 12)
        0.01
        """
        if name not in NAMED and name != "max":
            raise InputError("name", name, f"one of {[*NAMED, 'max']}")
        eta = self.total_variation
        if not eta and not self.delta:
            return 0.0
        if name == "max":
            return math.inf if self.delta else round_up(self.epsilon)
        f = NAMED[name]
        return round_up(f.disjoint_mass_term(eta, eta) if self.delta else eta * f.steepest_slope(self.epsilon))


def one_draw(
    *,
    epsilon: float,
    total_variations: tuple[float, float] = (1.0, 1.0),
    deltas: tuple[float, float] = (0.0, 0.0),
) -> OneDraw:
    """Return (2ε, δ, η) with δ = min{δ⁺ + e^ε δ⁻, η} (theory §6).

    η is the smaller of TV₀ + TV₁ and the largest total variation of a (2ε, δ) pair.

    For every group, the fitted distribution λ̂ and the true λ satisfy P(λ ∈ A) ≤ e^ε P(λ̂ ∈ A) + δ⁺ and the reverse
    with δ⁻ (``deltas``; 0 if D_∞ ≤ ε both ways). ``total_variations``: TV(λ_s, λ̂_s) of the two groups, or the two
    largest of more.

    >>> round(one_draw(epsilon=0.1, total_variations=(0.02, 0.03)).total_variation, 12)
    0.05
    """
    epsilon = check_non_negative("epsilon", epsilon)
    first, second = (check_probability("total_variations", value) for value in total_variations)
    delta_plus, delta_minus = (check_probability("deltas", value) for value in deltas)
    delta = _chain_deltas(delta_plus, epsilon, delta_minus)
    eta_from_pair = delta + (1 - delta) * math.tanh(epsilon)
    eta = min(1.0, round_up(min(eta_from_pair, first + second)))
    return OneDraw(2 * epsilon, min(delta, eta), eta)  # δ at any ε is at most the total variation


def _chain_deltas(delta_plus: float, epsilon: float, delta_minus: float) -> float:
    """Return δ⁺ + e^ε δ⁻, rounded up; at most 1."""
    if not delta_minus:
        return delta_plus
    return min(1.0, round_up(delta_plus + math.exp(epsilon) * delta_minus)) if epsilon <= INFINITE_EPSILON else 1.0


def approximate_knowledge(mechanism: CouplingMechanism, actual: Mapping[Any, ArrayLike]) -> OneDraw:
    """Return ``one_draw`` for the groups' actual distributions: ε = max D_∞ both ways, η from the total variations.

    ``actual``: the distribution of the values of every group. The rounding of the tables is included. If a distribution
    has mass where the fitted one has not, or the reverse, ε is infinite: the bound is then (0, η, η), by the total
    variations alone. Raises ``InputError`` unless there is a distribution for every group.

    >>> laws = {"a": [0.5, 0.5], "b": [0.25, 0.75]}
    >>> mechanism = CouplingMechanism.fit(laws, [[0, 1], [1, 0]], target=[0.4, 0.6])
    >>> near = approximate_knowledge(mechanism, {"a": [0.55, 0.45], "b": [0.25, 0.75]})
    >>> round(near.epsilon, 6), round(near.total_variation, 6)
    (0.210721, 0.05)
    """
    if not isinstance(actual, Mapping) or set(actual) != set(mechanism.groups):
        raise InputError("actual", actual, f"a law for each of {list(mechanism.groups)}")
    pairs = [
        (
            _exact_probabilities(fitted),
            _exact_probabilities(
                ExactDistribution.from_probabilities(f"the distribution of {group!r}", actual[group], len(fitted))
            ),
        )
        for group, fitted in mechanism.groups.items()
    ]
    epsilon = max(max(divergence_of("max", p, q), divergence_of("max", q, p)) for p, q in pairs)
    variations = sorted(min(1.0, divergence_of("total_variation", p, q)) for p, q in pairs)
    largest_two = (variations[-2:][0], variations[-1])
    if epsilon < math.inf:
        return _add_table_rounding(mechanism, epsilon, largest_two, (0.0, 0.0))
    return _add_table_rounding(mechanism, 0.0, largest_two, largest_two)


def _exact_probabilities(law: ExactDistribution) -> list[Any]:
    """Return the probabilities as rationals."""
    return [law[x] for x in range(len(law))]


def _add_table_rounding(
    mechanism: CouplingMechanism, epsilon: float, total_variations: tuple[float, float], deltas: tuple[float, float]
) -> OneDraw:
    """Return ``one_draw`` plus table rounding: with exact input, two groups' outputs have a ratio e^r and distance t.

    For a partial coupling t is its δ; it is added to δ⁻ and to one of the total variations.

    Then P₀ ≤ e^ε P̂₀ + δ⁺ ≤ e^{ε+r} P̂₁ + δ⁺ ≤ e^{2ε+r} P₁ + δ⁺ + e^{ε+r} δ⁻, or with t added to δ⁻ in place of r if r
    is infinite; and the total variation grows by at most 2 e^ε t.
    """
    pairs = list(combinations(mechanism.groups, 2))
    if not pairs:
        return OneDraw(0.0, 0.0, 0.0)
    rounding_ratio = distribution_privacy(mechanism, pairs, "max").epsilon
    rounding_variation = distribution_privacy(mechanism, pairs, "total_variation").epsilon
    delta_plus, delta_minus = deltas
    if mechanism.common_part is not None:
        shifted_deltas = delta_plus, min(1.0, round_up(delta_minus + rounding_variation))
        first, second = total_variations
        variations = min(1.0, round_up(first + rounding_variation)), second
        return one_draw(epsilon=epsilon, total_variations=variations, deltas=shifted_deltas)
    if rounding_ratio == math.inf:
        rounding_ratio, delta_minus = 0.0, min(1.0, round_up(delta_minus + rounding_variation))
    bound = one_draw(epsilon=epsilon, total_variations=total_variations, deltas=(delta_plus, delta_minus))
    eta = _chain_deltas(bound.total_variation, epsilon, min(1.0, 2 * rounding_variation))
    total_epsilon = bound.epsilon + rounding_ratio
    total_epsilon = round_up(total_epsilon) if bound.epsilon and rounding_ratio else total_epsilon
    return OneDraw(total_epsilon, min(_chain_deltas(delta_plus, epsilon + rounding_ratio, delta_minus), eta), eta)
