"""Group distributions learned from counts: bounds on the true distributions, and private learning."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv

from tightrope.accounting.neighbors import Neighbors
from tightrope.accounting.privacy_loss import PrivacyLoss
from tightrope.errors import InputError
from tightrope.mechanisms.discrete.integer_mechanism import IntegerMechanism
from tightrope.mechanisms.pairs import approx_dp
from tightrope.numerics.arrays import Floats, Integers, numeric_array
from tightrope.numerics.checks import (
    check_inner_probability,
    check_integer,
    check_non_negative,
    check_positive,
    check_probability,
)
from tightrope.numerics.divergences import INFINITE_EPSILON, NAMED
from tightrope.randomness.bits import Source
from tightrope.transport.couplings.mechanism import CouplingMechanism
from tightrope.transport.exact.plan import ExactDistribution
from tightrope.transport.guarantees.distribution_checks import distribution_privacy
from tightrope.transport.guarantees.divergences import divergence_upper_bound as divergence_of
from tightrope.transport.guarantees.divergences import round_up

# Guarantees for one draw of a coupling mechanism with approximately known distributions (theory §6, KM Thm 3).
#
# ``docs/proofs/transport.md`` has the corrected argument.


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


Group = Any

TABLE_ROUNDING = 2.0**-96
"""δ and η for the rounding of the tables: 2⁻¹²⁸ per point and row, for up to 2³² points."""
INVERSE_ERROR = 1e-9
"""Relative and absolute error of the inverse incomplete beta function; intervals are widened by it."""
BOUND_ROUNDING = 2.0**-49
"""Relative rounding error of a factor, a product and a difference."""
MAX_SAMPLES = 2**52
"""Counts and their sums are exact in doubles below this."""


@dataclass(frozen=True, slots=True, eq=False)
class LearnedLaw:
    """A smoothed estimate, shape [d], and simultaneous confidence bounds on the true distribution."""

    law: Floats
    lower: Floats
    upper: Floats
    total_variation: float

    def max_divergence_deltas(self, epsilon: float) -> tuple[float, float]:
        """Return bounds on Σ (λ − e^ε λ̂)₊ and Σ (λ̂ − e^ε λ)₊: the smoothed max-divergence in both directions."""
        factor, (law_lower, law_upper) = math.exp(min(epsilon, INFINITE_EPSILON)), _float_law_bounds(self.law)
        delta_plus = float(np.sum(np.maximum(self.upper - factor * law_lower, 0)))
        delta_minus = float(np.sum(np.maximum(law_upper - factor * self.lower * (1 - BOUND_ROUNDING), 0)))
        return min(1.0, round_up(delta_plus)), min(1.0, round_up(delta_minus))


@dataclass(frozen=True, slots=True, eq=False)
class LearnedLaws:
    """Estimates for all groups; ``failure`` bounds the probability that any bound here is wrong.

    ``loss`` is the privacy loss of learning: None if the counts were used without noise, and then the distributions
    must not come from protected data.
    """

    groups: dict[Group, LearnedLaw]
    failure: float
    loss: PrivacyLoss | None = None

    @property
    def laws_by_group(self) -> dict[Group, Floats]:
        """The distributions, as arguments for ``CouplingMechanism.fit``."""
        return {group: learned.law for group, learned in self.groups.items()}

    def one_draw(self, epsilon: float, *, mechanism_delta: float = 0.0) -> OneDraw:
        """Return the guarantee of one draw of a mechanism fitted with these, with confidence 1 − ``failure``.

        (2ε, δ, η): a larger ``epsilon`` has a smaller δ. Any ε ≥ 0 is valid; choose it by the resulting δ.
        ``mechanism_delta``: the δ of a partial coupling, 0 for others.
        """
        epsilon = check_non_negative("epsilon", epsilon)
        mechanism_delta = check_probability("mechanism_delta", mechanism_delta)
        deltas = [learned.max_divergence_deltas(epsilon) for learned in self.groups.values()]
        variations = sorted(learned.total_variation for learned in self.groups.values())
        delta_plus, delta_minus = (min(1.0, max(parts) + TABLE_ROUNDING) for parts in zip(*deltas, strict=True))
        largest_two = (variations[-1], min(1.0, variations[-2:][0] + TABLE_ROUNDING))
        if mechanism_delta > 0:
            delta_minus = min(1.0, round_up(delta_minus + mechanism_delta))
            largest_two = (largest_two[0], min(1.0, round_up(largest_two[1] + mechanism_delta)))
        return one_draw(epsilon=epsilon, total_variations=largest_two, deltas=(delta_plus, delta_minus))


def learn_laws(counts: Mapping[Group, ArrayLike], *, failure: float = 0.05, smoothing: float = 1.0) -> LearnedLaws:
    """Return λ̂ = (c + a) / (n + a d) for each group's counts c over d points; n independent samples a group.

    Each probability has a Clopper–Pearson interval, all of them together at ``failure`` / 2; TV(λ, c/n) ≤ √((d log 2 +
    log(2S/failure)) / (2n)) for S groups at the other half (Weissman), or less if the intervals imply it. ``smoothing``
    a > 0 keeps every point possible, so that max-divergences are finite up to a δ. Raises ``InputError`` for counts
    that are not integers ≥ 0, groups without samples, and unequal supports.

    >>> learned = learn_laws({"a": [500, 500], "b": [250, 750]})
    >>> learned.laws_by_group["a"].tolist(), round(learned.one_draw(0.2).delta, 3)
    ([0.5, 0.5], 0.0)
    """
    checked_counts = _check_counts(counts)
    empty_groups = [group for group, cells in checked_counts.items() if not cells.sum() > 0]
    if empty_groups:
        raise InputError("counts", empty_groups, "positive in total for every group", "leave these groups out")
    return _estimate_laws(
        checked_counts, 0, (check_inner_probability("failure", failure), check_positive("smoothing", smoothing)), None
    )


def learn_laws_privately(
    counts: Mapping[Group, ArrayLike],
    noise: IntegerMechanism,
    *,
    neighbors: Neighbors = Neighbors.ADD_REMOVE,
    failure: float = 0.05,
    smoothing: float = 1.0,
    randomness: Source | None = None,
) -> LearnedLaws:
    """Return ``learn_laws`` from counts + integer noise; its ``loss`` must be charged to the budget.

    One person has one value in one group: adding or removing a person moves one count by 1 and spends ``noise.loss``;
    replacing one moves two and spends twice that. The names of the groups and d must be public. A third of ``failure``
    allows for the noise: every count is within its ``half_width``, and the bounds hold for all such counts. Raises
    ``InputError`` as ``learn_laws`` does, and for other neighbors.

    >>> from tightrope import discrete_laplace
    >>> learned = learn_laws_privately({"a": [500, 500], "b": [250, 750]}, discrete_laplace(scale=2))
    >>> learned.loss.delta(0.5) < 1e-15, learned.laws_by_group["a"].shape
    (True, (2,))
    """
    if not isinstance(noise, IntegerMechanism):
        raise InputError("noise", noise, "an integer mechanism", "for example tightrope.discrete_laplace(scale=2)")
    checked_counts, checked_failure = _check_counts(counts), check_inner_probability("failure", failure)
    loss_factors = {Neighbors.ADD_REMOVE: 1, Neighbors.REPLACE_ONE: 2}
    if neighbors not in loss_factors:
        raise InputError("neighbors", neighbors, f"one of {[kind.value for kind in loss_factors]}")
    # All noises are within the width, except with probability `failure` / 3.
    count_number = sum(map(len, checked_counts.values()))
    confidence = math.nextafter(1 - checked_failure / (3 * count_number), 1.0)
    if not confidence < 1:
        raise InputError(
            "failure", checked_failure, f"at least {count_number * 2.0**-50:.3g} for {count_number} counts"
        )
    width = int(noise.half_width(confidence))
    noisy = {
        group: np.asarray(noise.release(cells, randomness), dtype=np.int64) for group, cells in checked_counts.items()
    }
    loss = replace(loss_factors[neighbors] * noise.loss, neighbors=neighbors)
    return _estimate_laws(
        noisy, width, (checked_failure * 2 / 3, check_positive("smoothing", smoothing)), (loss, checked_failure)
    )


def one_draw_from_samples(mechanism: CouplingMechanism, samples: int, *, failure: float = 0.05) -> OneDraw:
    """Return (0, η, η) with η = min{1, 2t + δ} and probability 1 − β, for the mechanism's δ (theory §6).

    t = √((d log 2 + log(S/β)) / (2n)).

    Each group's distribution must be the frequencies of at least n independent ``samples`` of that group, over d
    points; S groups. Raises ``InputError`` unless n ≥ 1 and 0 < β < 1.

    >>> fitted = CouplingMechanism.fit({"a": [0.5, 0.5], "b": [0.25, 0.75]}, [[0, 1], [1, 0]], target=[0.4, 0.6])
    >>> round(one_draw_from_samples(fitted, 100_000).total_variation, 4)
    0.0101
    """
    samples, failure = check_integer("samples", samples), check_inner_probability("failure", failure)
    points, groups = len(next(iter(mechanism.groups.values()))), len(mechanism.groups)
    variation = round_up(math.sqrt((points * math.log(2) + math.log(groups / failure)) / (2 * samples)))
    variation = min(1.0, variation + TABLE_ROUNDING)
    # The outputs of two groups differ by the mechanism's δ.
    shifted = min(1.0, round_up(variation + mechanism.delta)) if mechanism.delta > 0 else variation
    return one_draw(epsilon=0.0, total_variations=(variation, shifted), deltas=(variation, shifted))


def _estimate_laws(
    counts: dict[Group, Integers],
    width: int,
    settings: tuple[float, float],
    loss_and_failure: tuple[PrivacyLoss, float] | None,
) -> LearnedLaws:
    """Return the estimates and their bounds if every true count is within ``width`` of its cell."""
    failure, smoothing = settings
    interval_failure = failure / (4 * sum(len(cells) for cells in counts.values()))
    variation_failure = failure / (2 * len(counts))
    groups: dict[Group, LearnedLaw] = {}
    for group, cells in counts.items():
        smallest, largest, size = np.maximum(cells - width, 0), np.maximum(cells + width, 0), len(cells)
        min_samples, max_samples = int(smallest.sum()), int(largest.sum())
        smoothed = np.maximum(cells, 0) + smoothing
        law = smoothed / smoothed.sum()
        # One-sided Clopper–Pearson bounds for any count in [smallest, largest] and any number of samples in between.
        lower, is_positive = np.zeros(size), smallest > 0
        lower[is_positive] = betaincinv(
            smallest[is_positive], max_samples - smallest[is_positive] + 1, interval_failure
        )
        upper, is_bounded = np.ones(size), largest < min_samples
        upper[is_bounded] = 1 - betaincinv(min_samples - largest[is_bounded], largest[is_bounded] + 1, interval_failure)
        upper = np.minimum(upper * (1 + INVERSE_ERROR) + INVERSE_ERROR * 1e-3, 1)
        lower = np.maximum(lower * (1 - INVERSE_ERROR), 0)
        sampling_variation = (
            math.sqrt((size * math.log(2) - math.log(variation_failure)) / (2 * min_samples)) if min_samples else 1.0
        )
        frequency_bounds = (smallest / max(max_samples, 1), largest / min_samples if min_samples else np.ones(size))
        variation = min(
            1.0, sampling_variation + _variation_bound(law, *frequency_bounds), _variation_bound(law, lower, upper)
        )
        groups[group] = LearnedLaw(law, lower, upper, min(1.0, round_up(variation)))
    loss, total_failure = loss_and_failure or (None, failure)
    return LearnedLaws(groups, total_failure, loss)


def _variation_bound(law: Floats, lower: Floats, upper: Floats) -> float:
    """Return an upper bound on the total variation to every distribution between the bounds: the smaller sum."""
    law_lower, law_upper = _float_law_bounds(law)
    return float(min(np.sum(np.maximum(upper - law_lower, 0)), np.sum(np.maximum(law_upper - lower, 0))))


def _float_law_bounds(law: Floats) -> tuple[Floats, Floats]:
    """Return bounds on the exact normalized distribution that the floats represent."""
    error = BOUND_ROUNDING + len(law) * 2.0**-52
    return law * (1 - error), law * (1 + error)


def _check_counts(counts: Mapping[Group, ArrayLike]) -> dict[Group, Integers]:
    if not isinstance(counts, Mapping) or not counts:
        raise InputError("counts", counts, "a mapping from the name of each group to its counts")
    checked_counts: dict[Group, Integers] = {}
    for group, cells in counts.items():
        array = numeric_array(f"counts of {group!r}", cells, "whole numbers >= 0, one a point of the support")
        if array.ndim != 1 or not array.size or array.dtype.kind not in "iu" or not array.min() >= 0:
            raise InputError(f"counts of {group!r}", array.dtype.name, "whole numbers >= 0, one a point of the support")
        total = float(array.sum(dtype=np.float64))
        if not total < MAX_SAMPLES:
            raise InputError(f"sum of counts of {group!r}", total, "less than 2^52")
        checked_counts[group] = array.astype(np.int64)
    if len({len(cells) for cells in checked_counts.values()}) > 1:
        raise InputError("counts", {g: len(c) for g, c in checked_counts.items()}, "over one common support")
    return checked_counts
