"""What any additive noise can reach for a real-valued answer: proven bounds from both sides (theory §4)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from tightrope.documents.budget import Budget
from tightrope.errors import InputError, PrecisionError
from tightrope.mechanisms.laplace import laplace
from tightrope.mechanisms.mechanism import Continuous
from tightrope.mechanisms.truncated_laplace import truncated_laplace
from tightrope.noise.program.closed_form import least_cost, least_tails_from_half, packing_bound, rounded_down
from tightrope.noise.program.request import Cost, Promise
from tightrope.noise.real_noise import FORMULA_MARGIN, LeastRealNoise, best_stairs, least_real_noise
from tightrope.numerics.checks import Real, positive
from tightrope.numerics.root_finding import crossing

LARGEST_EPSILON = 600.0


@dataclass(frozen=True, slots=True)
class NoiseLimits:
    """No noise that keeps the promise costs less than ``lower``; one that costs ``upper`` exists.

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
    """Bounds on the least E φ(|X|) of additive noise on a real-valued answer that keeps every point of a budget.

    Lower: the sums of GDGK for any parameters, with a total variation and any non-decreasing φ (``tail_sum``), packing
    for large ε, and the dual of the linear program. Upper: truncated Laplace (GDGK), staircase noise, and the program's
    own law, of any shape. An upper bound of ∞ means that no formula and no program fits the parameters: formulas are
    for one ε, beside a total variation or not; of further points the program alone knows.

    Raises ``InputError`` as ``least_noise`` does, and for a trade-off function.

    >>> found = noise_limits(Budget(epsilon=0.3, delta=1.07481e-6))
    >>> {name: round(value, 6) for name, side, value in found.known if name.startswith("GDGK")}
    {'GDGK tail sums': 2.85805, 'GDGK truncated Laplace': 3.333088}
    >>> found.lower <= 3.32064 <= found.upper * 1.00001
    True
    """
    promise = Promise.of(budget)
    asked, width = Cost.of(cost), positive("sensitivity", sensitivity)
    known = [("GDGK tail sums", "lower", tail_sum(promise, width, asked))]
    if asked.power is not None:
        known.append(("packing", "lower", packing_bound(promise, width, asked.power)))
        stairs = best_stairs(promise, width, asked)
        known += [("staircase", "upper", _error(stairs, asked))] if stairs is not None else []
    known += [(name, "upper", value) for name, value in _formulas(promise, width, asked)]
    known += _program(promise, width, asked)
    return NoiseLimits(
        max(value for _, side, value in known if side == "lower"),
        min((value for _, side, value in known if side == "upper"), default=math.inf),
        tuple(known),
    )


def tail_sum(promise: Promise, sensitivity: float, cost: Cost) -> float:
    """φ(0) + 2 Σ_{k≥1} (φ(kΔ) − φ((k−1)Δ)) G_k, G_0 = ½, G_{k+1} = max(0, max_i e^{−ε_i}(G_k − δ_i)), rounded down.

    Some side has P(X ≥ 0) ≥ ½ after symmetrisation, and P(X ≥ (k+1)Δ) ≥ e^{−ε_i}(P(X ≥ kΔ) − δ_i) for every point.

    >>> round(tail_sum(Promise.of(Budget(epsilon=0.3, delta=1.07481e-6)), 1.0, Cost.of("squared")), 7)
    19.1867712
    """
    tails = least_tails_from_half(promise.uncapped.points)
    if cost.power is None:
        return least_cost(tails, cost.scaled(sensitivity))
    return rounded_down(Fraction(sensitivity) ** cost.power * Fraction(least_cost(tails, cost)))


def _formulas(promise: Promise, sensitivity: float, cost: Cost) -> list[tuple[str, float]]:
    """Laws with formulas for E|X| and E X² that keep the promise."""
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
                _error(truncated_laplace(epsilon=rate, delta=delta, sensitivity=sensitivity), cost),
            )
        ]
    if delta == 0 and 0 < eta < 1:
        rate = min(epsilon, -2 * math.log1p(-eta * (1 - FORMULA_MARGIN)))
        return [("Laplace", _error(laplace(scale=sensitivity / rate, sensitivity=sensitivity), cost))]
    return []


def _largest_rate(epsilon: float, delta: float, eta: float) -> float:
    """The largest ε' ≤ ε whose truncated Laplace law has total variation η or less (theory §4); 0 is uniform noise."""
    most = eta * (1 - FORMULA_MARGIN)
    if _variation(epsilon, delta) <= most:
        return epsilon
    return crossing(lambda rate: _variation(rate, delta) - most, epsilon, 0.0, side="passes")


def _variation(epsilon: float, delta: float) -> float:
    """(1 − e^{−ε/2})/(1 − e^{−Aε/Δ}), with e^{Aε/Δ} = 1 + (e^ε − 1)/(2δ); δ at ε = 0."""
    ratio = math.expm1(epsilon) / (2 * delta)
    return -math.expm1(-epsilon / 2) * (1 + ratio) / ratio if ratio > 0 else delta


def _error(law: Continuous, cost: Cost) -> float:
    return (law.mean_absolute_error if cost.power == 1 else law.mean_squared_error) * (1 + FORMULA_MARGIN)


def _program(promise: Promise, sensitivity: float, cost: Cost) -> list[tuple[str, str, float]]:
    """The linear program's law and bound; nothing where it would be too large, or is not solved."""
    try:
        noise = least_real_noise(promise, sensitivity, cost, "any")
        found = noise.certificate
    except (InputError, PrecisionError):
        return []
    bounds = [("linear program", "lower", found.lower)] if found.argument.kind == "dual" else []
    laws = [("linear program", "upper", found.upper)] if isinstance(noise, LeastRealNoise) else []
    return bounds + laws
