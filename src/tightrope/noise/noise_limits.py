"""Proven two-sided bounds on the least additive noise for a real-valued answer (theory §4)."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction

from tightrope.display import Displayed, Rounded, Shown, Summary
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
"""Formulas are not evaluated for a larger ε."""


@dataclass(frozen=True, slots=True, repr=False)
class NoiseLimits(Displayed):
    """Bounds on the least expected cost of noise that meets a guarantee.

    ``known`` has every bound that was computed, as (its name, "lower" or "upper", value); the limits are the best ones.
    """

    lower: float
    upper: float
    known: tuple[tuple[str, str, float], ...]

    @property
    def gap(self) -> float:
        """``upper / lower − 1``."""
        return self.upper / self.lower - 1 if self.lower > 0 else math.inf

    def text_summary(self) -> Summary:
        """Return both limits, and every bound that was computed."""
        facts = [("at least", Rounded(self.lower, "down")), ("at most", Rounded(self.upper, "up"))]
        rows: list[tuple[Shown, ...]] = [
            (name, side, Rounded(value, "down" if side == "lower" else "up")) for name, side, value in self.known
        ]
        return Summary("bounds on the least expected cost of noise", facts, ("bound", "side", "value"), rows)


def noise_limits(
    budget: Budget, *, sensitivity: Real = 1, cost: str | Callable[[float], float] = "absolute"
) -> NoiseLimits:
    """Return bounds on the least E φ(|X|) of additive noise on a real-valued answer that meets every point of a budget.

    Lower: the sums of GDGK for any parameters, with a total variation and any non-decreasing φ (``tail_sum``), packing
    for large ε, and the dual of the linear program. Upper: truncated Laplace (GDGK), staircase noise, and the program's
    solution, of any shape. An upper bound of ∞ means that neither a formula nor the program applies to the parameters:
    formulas are for one ε, with or without a total variation; only the program uses further points.

    Raises ``InputError`` as ``least_noise`` does, and for a trade-off function.

    >>> found = noise_limits(Budget(epsilon=0.3, delta=1.07481e-6))
    >>> {name: round(value, 6) for name, side, value in found.known if name.startswith("GDGK")}
    {'GDGK tail sums': 2.85805, 'GDGK truncated Laplace': 3.333088}
    >>> found.lower <= 3.32064 <= found.upper * 1.00001
    True
    """
    target = PrivacyTarget.from_budget(budget)
    error_cost, checked_sensitivity = ErrorCost.from_argument(cost), check_positive("sensitivity", sensitivity)
    known = [("GDGK tail sums", "lower", tail_sum(target, checked_sensitivity, error_cost))]
    if error_cost.power is not None:
        known.append(("packing", "lower", packing_bound(target, checked_sensitivity, error_cost.power)))
        staircase = best_real_staircase(target, checked_sensitivity, error_cost)
        known += [("staircase", "upper", _formula_cost(staircase, error_cost))] if staircase is not None else []
    known += [(name, "upper", value) for name, value in _formula_bounds(target, checked_sensitivity, error_cost)]
    # The linear program's bounds are left out if it would be too large or the solver fails.
    with suppress(InputError, PrecisionError):
        noise = least_real_noise(target, checked_sensitivity, error_cost, "any")
        certificate = noise.certificate
        known += [("linear program", "lower", certificate.lower)] if certificate.argument.kind == "dual" else []
        known += [("linear program", "upper", certificate.upper)] if isinstance(noise, LeastRealNoise) else []
    return NoiseLimits(
        max(value for _, side, value in known if side == "lower"),
        min((value for _, side, value in known if side == "upper"), default=math.inf),
        tuple(known),
    )


def tail_sum(target: PrivacyTarget, sensitivity: float, cost: ErrorCost) -> float:
    """Return φ(0) + 2 Σ_{k≥1} (φ(kΔ) − φ((k−1)Δ)) G_k, rounded down; no noise that meets the guarantee costs less.

    G_0 = ½ and G_{k+1} = max(0, max_i e^{−ε_i}(G_k − δ_i)). After symmetrization P(X ≥ 0) ≥ ½, and
    P(X ≥ (k+1)Δ) ≥ e^{−ε_i}(P(X ≥ kΔ) − δ_i) for every point.

    >>> target = PrivacyTarget.from_budget(Budget(epsilon=0.3, delta=1.07481e-6))
    >>> round(tail_sum(target, 1.0, ErrorCost.from_argument("squared")), 7)
    19.1867712
    """
    tails = least_tails_from_half(target.without_cap_point.points)
    if cost.power is None:
        return cost_from_tails(tails, cost.scaled_by(sensitivity))
    return round_down(Fraction(sensitivity) ** cost.power * Fraction(cost_from_tails(tails, cost)))


def largest_noise_epsilon(epsilon: float, delta: float, eta: float) -> float:
    """Return the largest ε' ≤ ε whose truncated Laplace noise has total variation ≤ η (theory §4); 0 for uniform."""
    allowed = eta * (1 - FORMULA_MARGIN)
    if _truncated_total_variation(epsilon, delta) <= allowed:
        return epsilon
    return find_crossing(
        lambda noise_epsilon: _truncated_total_variation(noise_epsilon, delta) - allowed, epsilon, 0.0, side="passes"
    )


def _formula_bounds(target: PrivacyTarget, sensitivity: float, cost: ErrorCost) -> list[tuple[str, float]]:
    """Return (name, cost) of the distributions with formulas for E|X| and E X² that meet the guarantee."""
    epsilon, delta = target.points[-1]
    eta = next((total_variation for at, total_variation in target.points if at == 0), 1.0)
    has_several_epsilons = sum(at > 0 for at, _ in target.points) > 1
    if has_several_epsilons or cost.power is None or not epsilon <= LARGEST_EPSILON:
        return []
    if 0 < delta <= 0.5:
        noise_epsilon = largest_noise_epsilon(epsilon, delta, eta)
        return [
            (
                "GDGK truncated Laplace",
                _formula_cost(truncated_laplace(epsilon=noise_epsilon, delta=delta, sensitivity=sensitivity), cost),
            )
        ]
    if delta == 0 and 0 < eta < 1:
        noise_epsilon = min(epsilon, -2 * math.log1p(-eta * (1 - FORMULA_MARGIN)))
        return [("Laplace", _formula_cost(laplace(scale=sensitivity / noise_epsilon, sensitivity=sensitivity), cost))]
    return []


def _truncated_total_variation(epsilon: float, delta: float) -> float:
    """Return the total variation of truncated Laplace noise on −A..A: (1 − e^{−ε/2})/(1 − e^{−Aε/Δ}); δ for ε = 0.

    e^{Aε/Δ} = 1 + (e^ε − 1)/(2δ).
    """
    ratio = math.expm1(epsilon) / (2 * delta)
    return -math.expm1(-epsilon / 2) * (1 + ratio) / ratio if ratio > 0 else delta


def _formula_cost(noise: ContinuousMechanism, cost: ErrorCost) -> float:
    """Return E|X| or E X², raised by the rounding error of formulas."""
    return (noise.mean_absolute_error if cost.power == 1 else noise.mean_squared_error) * (1 + FORMULA_MARGIN)
