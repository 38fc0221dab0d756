"""The least noise that meets a guarantee, with a proof that nothing costs less."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

import numpy as np

from tightrope.documents.budget import STATE_POINTS, Budget, Guarantee, Tradeoff
from tightrope.documents.noise import Argument, NoiseCertificate
from tightrope.errors import InputError, InsufficientBudgetError, PrecisionError
from tightrope.mechanisms.discrete.integer_mechanism import IntegerMechanism
from tightrope.mechanisms.discrete.integer_tables import optimal_table
from tightrope.mechanisms.discrete.integer_weights import LARGEST_STEP, ONE, PlateauTail
from tightrope.mechanisms.discrete.noise_table import NoiseTable, build_noise_table
from tightrope.noise.composed.composed_bound import ComposedBound
from tightrope.noise.composed.composed_noise import composed_noise
from tightrope.noise.composed.score_bound import ComposedProof
from tightrope.noise.program.certificate import (
    CertificateBuilder,
    CertifiedMechanism,
    CostBound,
    SingleReleaseProof,
    certified_cost,
    table_document,
)
from tightrope.noise.program.closed_form import cost_from_tails
from tightrope.noise.program.request import ErrorCost, PrivacyTarget, Shape, parse_noise_shape
from tightrope.noise.program.search import least_table
from tightrope.numerics.checks import Real, check_integer
from tightrope.numerics.root_finding import Side, find_crossing


@dataclass(frozen=True, eq=False, repr=False)  # not slotted: the certificate is cached
class LeastNoise(IntegerMechanism, CertifiedMechanism):
    """Integer noise, sampled and certified from one table. ``certificate`` is computed at first access."""

    table: NoiseTable
    sensitivity: int
    certificate_builder: CertificateBuilder

    @cached_property
    def certificate(self) -> NoiseCertificate:  # type: ignore[override]
        """Bounds on the least cost, the realized guarantee, and why the bound holds."""
        return self.certificate_builder.build_certificate(self.table)


def least_noise(
    budget: Budget,
    *,
    sensitivity: Real = 1,
    cost: str | Callable[[float], float] = "absolute",
    integer: bool = True,
    shape: Shape = "unimodal",
    releases: int = 1,
) -> CertifiedMechanism:
    """Return the noise with the least expected cost E φ(|X|) that meets a budget's points, or its trade-off function.

    ``cost`` is "absolute", "squared" or a non-decreasing function of |x|. If no point of the budget implies its cap on
    infinite loss, the noise has this δ at ε = 16. A trade-off function is for one integer release of sensitivity 1.

    - Integer noise of sensitivity 1 (theory §4.1): a closed form, best for every cost at once; ``shape`` is ignored.
    - Sensitivity above 1: linear programs (theory §4.2). ``shape="unimodal"``, the default, requires weights that do
      not rise with |x|; one shift binds, and ``certificate.unimodal_price`` states the additional cost: 0.1 % or
      less, some percent with a total variation or a large δ. ``"any"`` is the optimum. This takes milliseconds, or
      seconds for thousands of cells; Ctrl-C works.
    - ``integer=False``: for real-valued answers; a loss, errors and a certificate, no sampler.
    - ``releases`` > 1: each of that many answers gets this noise, and all of them together meet the budget. The
      certificate's gap is not small: some percent at two, a factor of two at hundreds of releases.

    **Direction.** The certificate's ``upper`` and guarantee are computed from the integers that are sampled, at every
    shift up to the sensitivity, rounded to the safe side; its ``lower`` holds for every noise and any solver error.
    Two datasets are neighbors if the answer differs by at most ``sensitivity``. Raises ``InputError`` for invalid
    arguments and infeasible budgets.

    >>> budget = Budget(epsilon=1, delta=1e-6)
    >>> noise = least_noise(budget)
    >>> round(noise.mean_absolute_error, 12), noise.certificate.gap < 1e-11
    (0.850902115757, True)
    >>> noise = least_noise(budget, sensitivity=3, shape="any")
    >>> round(noise.mean_absolute_error, 6), noise.certificate.gap < 1e-6
    (2.860785, True)
    """
    error_cost, checked_shape = ErrorCost.from_argument(cost), parse_noise_shape(shape)
    release_count = check_integer("releases", releases)
    if isinstance(budget, Budget) and budget.tradeoff is not None:
        if not (integer and sensitivity == 1 and release_count == 1):
            text = "a trade-off function is only supported for one integer release of sensitivity 1"
            raise InputError.from_text("tradeoff", f"{text}; {STATE_POINTS}")
        return LeastNoise(tradeoff_table(budget.tradeoff), 1, TradeoffCertificateBuilder(budget.tradeoff, error_cost))
    target = PrivacyTarget.from_budget(budget)
    if not integer:
        from tightrope.noise.real_noise import least_real_noise

        if not release_count == 1:
            raise InputError("releases", release_count, "1 for real-valued noise", "round to fixed point: integer=True")
        return least_real_noise(target, sensitivity, error_cost, checked_shape)
    checked_sensitivity = check_integer(
        "sensitivity", sensitivity, remedy="round the answers to fixed point first, or pass integer=False"
    )
    bound = CostBound(target, checked_sensitivity, error_cost)
    if release_count > 1:
        composed = composed_noise(budget, releases=release_count, sensitivity=checked_sensitivity, cost=cost)
        return LeastNoise(composed.table, checked_sensitivity, ComposedProof(ComposedBound(bound, release_count)))
    if checked_sensitivity == 1:
        return LeastNoise(optimal_table(target.points), 1, SingleReleaseProof(bound, checked_shape))
    least = least_table(target, checked_sensitivity, bound.error_costs, checked_shape)
    return LeastNoise(least.table, checked_sensitivity, SingleReleaseProof(bound, checked_shape, least.multipliers))


def composed_limit(
    budget: Budget, *, releases: int, sensitivity: int = 1, cost: str | Callable[[float], float] = "squared"
) -> float:
    """Return a lower bound, rounded down, on the cost of any noise for each of several releases (``score_bound``).

    >>> 140 < composed_limit(Budget(epsilon=1, delta=1e-6), releases=10) < 158.6  # that much is reached
    True
    """
    bound = CostBound(
        PrivacyTarget.from_budget(budget), check_integer("sensitivity", sensitivity), ErrorCost.from_argument(cost)
    )
    counted = ComposedBound(bound, check_integer("releases", releases))
    try:
        found = composed_noise(budget, releases=releases, sensitivity=sensitivity, cost=cost)
    except InsufficientBudgetError:
        return counted.lower_bound
    return ComposedProof(counted).bound_and_argument(found.table)[0]


# The least integer noise of sensitivity 1 for any symmetric trade-off function f (theory §4.1).
#
# P(X ≥ k) = G_k with G_1 the fixed point of f and G_{k+1} = f(1 − G_k). f is a function of floats whose absolute error
# is assumed to be at most ``ERROR``; every step is rounded to the private side. For small G_k, 1 − G_k has too few
# digits, so from there on the distribution is geometric. This meets f: f(1 − G) is convex in G and 0 at 0, so
# f(1 − G)/G does not increase as G decreases. The sampled table is checked against f at every vertex of its curve.

ERROR = 2.0**-46
"""Largest absolute error of f."""
GEOMETRIC_FROM = 2.0**-26
"""Below this G the distribution is geometric."""
MAX_TAILS = 1 << 16
"""Maximal number of cells before the geometric tail."""
CHECKED_POINTS = 257
"""Number of points at which the shape of f is checked, to ``SHAPE_TOLERANCE``."""
SHAPE_TOLERANCE = 1e-6
STATEMENT = (
    "For every noise that keeps the trade-off function f at shift 1, P(|X| >= k) >= 2 G_k with G_1 = f(G_1) and "
    "G_(k+1) = f(1 - G_k); so it costs at least phi(0) + 2 sum_k (phi(k) - phi(k-1)) G_k, with G_k at least tails[k-1] "
    "if f is right to within error. Proof: docs/proofs/optimal-noise.md."
)


@dataclass(frozen=True)
class TradeoffCertificateBuilder(CertificateBuilder):
    """Builds the certificate of noise for one release that meets the trade-off function f."""

    tradeoff: Tradeoff
    cost: ErrorCost

    def build_certificate(self, table: NoiseTable) -> NoiseCertificate:
        tails = _tail_recursion(self.tradeoff, -ERROR)
        upper = certified_cost(table, self.cost)
        fixed_point_tails = [int(Fraction(tail) * ONE) for tail in tails]
        # The guarantee is stated at the largest finite loss, where δ is the mass of infinite loss.
        loss, atoms = table.loss(1), table.atoms_for_shift(1)
        epsilon = max(0.0, atoms.largest_loss + 2 * atoms.rounding_error_bound)
        return NoiseCertificate(
            lower=min(upper, cost_from_tails(fixed_point_tails, self.cost)),
            upper=upper,
            guarantee=Guarantee(epsilon, float(loss.delta(epsilon)), loss.total_variation()),
            realized=(),
            cost=self.cost.name,
            sensitivity=1,
            shape="any",
            mean_absolute_error=table.mean_absolute,
            mean_squared_error=table.mean_squared,
            worst_error=table.largest_magnitude,
            argument=Argument("theorem", STATEMENT, {"tails": tails, "error": ERROR}),
            unimodal_price=0.0,
            table=table_document(table),
        )


def tradeoff_table(tradeoff: Tradeoff) -> NoiseTable:
    """Return the table for f on [0, 1]: convex, decreasing, its own inverse; raises ``InputError`` for other f.

    >>> table = tradeoff_table(lambda t: max(0.0, 1 - math.e * t, (1 - t) / math.e))  # (1, 0)
    >>> round(table.mean_absolute * math.sinh(1), 6)
    1.0
    """
    rates = np.linspace(0, 1, CHECKED_POINTS)
    values = np.array([tradeoff_value(tradeoff, rate) for rate in rates.tolist()])
    _require_shape(bool(np.all(np.diff(values) <= SHAPE_TOLERANCE)), tradeoff, "decreasing")
    _require_shape(bool(np.all(np.diff(values, 2) >= -SHAPE_TOLERANCE)), tradeoff, "convex")
    _require_shape(
        bool(np.all(values <= 1 - rates + SHAPE_TOLERANCE)), tradeoff, "at most 1 - t, which is perfect privacy"
    )
    _require_shape(bool(np.any(values[1:-1] > 0)), tradeoff, "above 0 somewhere between 0 and 1")
    inverted = [
        (tradeoff_value(tradeoff, v), rate) for v, rate in zip(values.tolist(), rates.tolist(), strict=True) if v > 0
    ]
    slope = 1 + np.max(np.abs(np.diff(values))) * CHECKED_POINTS
    largest_deviation = max(abs(value - rate) for value, rate in inverted if rate > 0)
    _require_shape(
        largest_deviation <= SHAPE_TOLERANCE * slope,
        tradeoff,
        "its own inverse (f(f(t)) = t): take max(f, its inverse)",
    )
    tails = _tail_recursion(tradeoff, ERROR)
    raw = [int(Fraction(tail) * ONE) for tail in tails]
    weights = [ONE - 2 * raw[0]] + [a - b for a, b in pairwise(raw)]
    # Beyond the last G the tail falls by f(1 − G)/G, rounded up; it ends there if f is 0.
    next_tail = tradeoff_value(tradeoff, _complement_below(tails[-1]))
    if next_tail == 0:
        table = build_noise_table([*weights, raw[-1]])
    else:
        ratio = max((next_tail + ERROR) / tails[-1] * (1 + 2.0**-50), math.exp(-LARGEST_STEP))
        if not ratio < 1 - 1e-6:
            raise InputError("tradeoff", ratio, "one that falls faster than 1 - t near 1", "measure in coarser units")
        fixed_ratio = int(Fraction(ratio) * ONE)
        table = build_noise_table(weights, PlateauTail(raw[-1] * (ONE - fixed_ratio) // ONE, fixed_ratio))
    if not meets_tradeoff(table, tradeoff, len(tails)):
        raise PrecisionError("the noise could not be shown to meet this trade-off function; is it exact to 1e-14?")
    return table


def meets_tradeoff(table: NoiseTable, tradeoff: Tradeoff, vertices: int) -> bool:
    """Return whether the first vertices (1 − G_k, G_{k+1}) of the table's curve lie above f, by half its error.

    Beyond them f(1 − G)/G does not increase, and the table falls in one ratio.
    """
    tails = [table.survival_probability(k) for k in range(vertices + 1)]
    first_tail = float(tails[0])
    first_holds = first_tail >= tradeoff_value(tradeoff, first_tail) + ERROR / 2 or first_tail >= 0.5
    vertices_hold = (
        float(b) >= tradeoff_value(tradeoff, _complement_below(float(a))) + ERROR / 2 for a, b in pairwise(tails) if b
    )
    end_holds = all(
        tradeoff_value(tradeoff, _complement_below(float(a))) <= 0 for a, b in pairwise(tails) if a and not b
    )
    return first_holds and all(vertices_hold) and end_holds


def tradeoff_value(tradeoff: Tradeoff, rate: float) -> float:
    """Return f at one point; raises ``InputError`` if the value is not a number in [0, 1]."""
    try:
        value = float(tradeoff(rate))
    except (TypeError, ValueError, ArithmeticError) as error:
        raise InputError("tradeoff", tradeoff, f"a function with a number at {rate!r}", str(error)) from None
    if not -ERROR <= value <= 1 + ERROR:
        raise InputError("tradeoff", value, f"between 0 and 1 at {rate!r}", "it gives error rates")
    return min(max(value, 0.0), 1.0)


def _complement_below(tail: float) -> float:
    """Return 1 − tail, rounded down, so that f of it is rounded up."""
    return max(0.0, math.nextafter(1 - tail, 0.0))


def _tail_recursion(tradeoff: Tradeoff, error: float) -> list[float]:
    """Return G_1, G_2, … down to ``GEOMETRIC_FROM`` or to where f is 0, each raised by ``error``, which may be < 0."""
    rounds_up = error > 0
    side: Side = "passes" if rounds_up else "fails"
    tails = [
        min(0.5, find_crossing(lambda rate: tradeoff_value(tradeoff, rate) - rate, 0.0, 0.5, side=side) + 2 * error)
    ]
    while tails[-1] > GEOMETRIC_FROM:
        last = tails[-1]
        complement = _complement_below(last) if error > 0 else min(1.0, math.nextafter(1 - last, 2.0))
        value = tradeoff_value(tradeoff, complement)
        next_tail = min(last, value + error)
        if value == 0 or next_tail <= 0:
            break
        tails.append(next_tail)
        if len(tails) > MAX_TAILS:
            raise InputError(
                "tradeoff",
                tradeoff,
                f"one that noise of fewer than {MAX_TAILS} cells can meet",
                "measure in coarser units",
            )
    return tails


def _require_shape(is_met: bool, tradeoff: Tradeoff, expected: str) -> None:
    if not is_met:
        raise InputError(
            "tradeoff", tradeoff, expected, "a trade-off function gives the least type-II error at a type-I rate"
        )
