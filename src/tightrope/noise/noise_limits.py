"""Proven two-sided bounds on the least additive noise for a real-valued answer (theory §4)."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction

from tightrope.documents.budget import Budget
from tightrope.errors import InputError, PrecisionError
from tightrope.mechanisms.laplace import laplace
from tightrope.mechanisms.mechanism import ContinuousMechanism
from tightrope.mechanisms.truncated_laplace import truncated_laplace
from tightrope.noise.program.closed_form import cost_from_tails, least_tails_from_half, packing_bound, round_down
from tightrope.noise.program.request import ErrorCost, PrivacyTarget
from tightrope.noise.real_noise import FORMULA_MARGIN, LeastRealNoise, best_real_staircase, least_real_noise
from tightrope.numerics.checks import Real, check_positive
from tightrope.numerics.root_finding import find_crossing

LARGEST_EPSILON = 600.0


@dataclass(frozen=True, slots=True)
class NoiseLimits:
    """Bounds: noise that meets the guarantee costs at least ``lower``, and some costs at most ``upper``.

    ``known`` has every bound that was computed, as (whose, "lower" or "upper", value); the best ones are the limits.
    """

    lower: float
    upper: float
    known: tuple[tuple[str, str, float], ...]

    @property
    def gap(self) -> float:
        """Upper / lower − 1."""
        return self.upper / self.lower - 1 if self.lower > 0 else math.inf


def noise_limits(
    budget: Budget, *, sensitivity: Real = 1, cost: str | Callable[[float], float] = "absolute"
) -> NoiseLimits:
    """Return bounds on the least E φ(|X|) of additive noise on a real-valued answer that meets every point of a budget.

    Lower: the sums of GDGK for any parameters, with a total variation and any non-decreasing φ (``tail_sum``), packing
    for large ε, and the dual of the linear program. Upper: truncated Laplace (GDGK), staircase noise, and the program's
    own distribution, of any shape. An upper bound of ∞ means that the parameters fit neither a formula nor the program:
    formulas are for one ε, with or without a total variation; only the program uses further points.

    Raises ``InputError`` as ``least_noise`` does, and for a trade-off function.

    >>> found = noise_limits(Budget(epsilon=0.3, delta=1.07481e-6))
    >>> {name: round(value, 6) for name, side, value in found.known if name.startswith("GDGK")}
    {'GDGK tail sums': 2.85805, 'GDGK truncated Laplace': 3.333088}
    >>> found.lower <= 3.32064 <= found.upper * 1.00001
    True
    """
    promise = PrivacyTarget.from_budget(budget)
    asked, width = ErrorCost.from_argument(cost), check_positive("sensitivity", sensitivity)
    known = [("GDGK tail sums", "lower", tail_sum(promise, width, asked))]
    if asked.power is not None:
        known.append(("packing", "lower", packing_bound(promise, width, asked.power)))
        stairs = best_real_staircase(promise, width, asked)
        known += [("staircase", "upper", _formula_cost(stairs, asked))] if stairs is not None else []
    known += [(name, "upper", value) for name, value in _formula_bounds(promise, width, asked)]
    # The linear program's distribution and bound are left out where it would be too large, or is not solved.
    with suppress(InputError, PrecisionError):
        noise = least_real_noise(promise, width, asked, "any")
        certificate = noise.certificate
        known += [("linear program", "lower", certificate.lower)] if certificate.argument.kind == "dual" else []
        known += [("linear program", "upper", certificate.upper)] if isinstance(noise, LeastRealNoise) else []
    return NoiseLimits(
        max(value for _, side, value in known if side == "lower"),
        min((value for _, side, value in known if side == "upper"), default=math.inf),
        tuple(known),
    )


def tail_sum(promise: PrivacyTarget, sensitivity: float, cost: ErrorCost) -> float:
    """φ(0) + 2 Σ_{k≥1} (φ(kΔ) − φ((k−1)Δ)) G_k, G_0 = ½, G_{k+1} = max(0, max_i e^{−ε_i}(G_k − δ_i)), rounded down.

    Some side has P(X ≥ 0) ≥ ½ after symmetrization, and P(X ≥ (k+1)Δ) ≥ e^{−ε_i}(P(X ≥ kΔ) − δ_i) for every point.

    >>> target = PrivacyTarget.from_budget(Budget(epsilon=0.3, delta=1.07481e-6))
    >>> round(tail_sum(target, 1.0, ErrorCost.from_argument("squared")), 7)
    19.1867712
    """
    tails = least_tails_from_half(promise.without_cap.points)
    if cost.power is None:
        return cost_from_tails(tails, cost.scaled_by(sensitivity))
    return round_down(Fraction(sensitivity) ** cost.power * Fraction(cost_from_tails(tails, cost)))


def _formula_bounds(promise: PrivacyTarget, sensitivity: float, cost: ErrorCost) -> list[tuple[str, float]]:
    """Distributions with formulas for E|X| and E X² that meet the guarantee."""
    # (ε, δ, η); η = 1 where it says nothing.
    triple_eta = next((triple_delta for triple_epsilon, triple_delta in promise.points if triple_epsilon == 0), 1.0)
    triple_epsilon, triple_delta = promise.points[-1]
    epsilon, delta, eta = triple_epsilon, triple_delta, triple_eta
    several = sum(at > 0 for at, _ in promise.points) > 1
    if several or cost.power is None or not epsilon <= LARGEST_EPSILON:
        return []
    if 0 < delta <= 0.5:
        rate = _largest_rate(epsilon, delta, eta)
        return [
            (
                "GDGK truncated Laplace",
                _formula_cost(truncated_laplace(epsilon=rate, delta=delta, sensitivity=sensitivity), cost),
            )
        ]
    if delta == 0 and 0 < eta < 1:
        rate = min(epsilon, -2 * math.log1p(-eta * (1 - FORMULA_MARGIN)))
        return [("Laplace", _formula_cost(laplace(scale=sensitivity / rate, sensitivity=sensitivity), cost))]
    return []


def _largest_rate(epsilon: float, delta: float, eta: float) -> float:
    """Return the largest ε' ≤ ε whose truncated Laplace noise has total variation ≤ η (theory §4); 0 for uniform."""
    most = eta * (1 - FORMULA_MARGIN)
    if _truncated_total_variation(epsilon, delta) <= most:
        return epsilon
    return find_crossing(lambda rate: _truncated_total_variation(rate, delta) - most, epsilon, 0.0, side="passes")


def _truncated_total_variation(epsilon: float, delta: float) -> float:
    """(1 − e^{−ε/2})/(1 − e^{−Aε/Δ}), with e^{Aε/Δ} = 1 + (e^ε − 1)/(2δ); δ at ε = 0."""
    ratio = math.expm1(epsilon) / (2 * delta)
    return -math.expm1(-epsilon / 2) * (1 + ratio) / ratio if ratio > 0 else delta


def _formula_cost(law: ContinuousMechanism, cost: ErrorCost) -> float:
    return (law.mean_absolute_error if cost.power == 1 else law.mean_squared_error) * (1 + FORMULA_MARGIN)
