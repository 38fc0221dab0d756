"""The least noise that meets a guarantee, with a proof that nothing costs less."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

import numpy as np

from tightrope.documents.budget import STATE_POINTS, Budget, Guarantee, Tradeoff
from tightrope.documents.noise import Argument, NoiseCertificate
from tightrope.errors import InputError, PrecisionError
from tightrope.mechanisms.discrete.integer_mechanism import IntegerMechanism
from tightrope.mechanisms.discrete.integer_tables import optimal_table
from tightrope.mechanisms.discrete.integer_weights import LARGEST_STEP, ONE, PlateauTail
from tightrope.mechanisms.discrete.noise_table import NoiseTable, build_noise_table
from tightrope.noise.composed.composed_bound import ComposedBound, ComposedProof
from tightrope.noise.composed.composed_noise import composed_noise
from tightrope.noise.program.certificate import (
    CertificateBuilder,
    CertifiedMechanism,
    CostBound,
    SingleReleaseProof,
    certified_cost,
    table_document,
)
from tightrope.noise.program.closed_form import cost_from_tails
from tightrope.noise.program.request import ErrorCost, PrivacyTarget, Shape, parse_shape
from tightrope.noise.program.search import least_table
from tightrope.numerics.checks import Real, check_integer
from tightrope.numerics.root_finding import Side, find_crossing


@dataclass(frozen=True, eq=False)  # not slotted: the certificate is kept
class LeastNoise(IntegerMechanism, CertifiedMechanism):
    """Integer noise, sampled and certified from one table. ``certificate`` is computed at first access."""

    table: NoiseTable
    sensitivity: int
    certificate_builder: CertificateBuilder = field(repr=False)

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

    ``cost`` is "absolute", "squared" or a non-decreasing function of |x|. A cap on certain failure that no point of the
    budget implies is kept at ε = 16. A trade-off function is for one integer release of sensitivity 1.

    - Integer noise of sensitivity 1 (theory §4.1): a closed form, best for every cost at once; ``shape`` is ignored.
    - Sensitivity above 1: linear programs (theory §4.2). ``shape="unimodal"``, the default, requires weights that do
      not rise with |x|; one shift binds, and ``certificate.unimodal_price`` states the additional cost: 0.1 % or
      less, some percent with a total variation or a large δ. ``"any"`` is
      the optimum. Usually milliseconds, seconds for thousands of cells; Ctrl-C works.
    - ``integer=False``: for real-valued answers; a loss, errors and a certificate, no sampler.
    - ``releases`` > 1: each of that many answers gets this noise, and all of them together meet the budget. The
      certificate's gap is not small: some percent at two, a factor of two at hundreds of releases.

    **Direction.** The certificate's ``upper`` and guarantee are computed from the integers that are sampled, at every
    shift up to the sensitivity, rounded to the safe side; its ``lower`` holds for every noise and any solver error.
    Neighbors: as defined by the sensitivity. Raises ``InputError`` for invalid arguments and infeasible budgets.

    >>> budget = Budget(epsilon=1, delta=1e-6)
    >>> noise = least_noise(budget)
    >>> round(noise.mean_absolute_error, 12), noise.certificate.gap < 1e-11
    (0.850902115757, True)
    >>> noise = least_noise(budget, sensitivity=3, shape="any")
    >>> round(noise.mean_absolute_error, 6), noise.certificate.gap < 1e-6
    (2.860785, True)
    """
    asked, chosen = ErrorCost.from_argument(cost), parse_shape(shape)
    count = check_integer("releases", releases)
    if isinstance(budget, Budget) and budget.tradeoff is not None:
        if not (integer and sensitivity == 1 and count == 1):
            raise InputError(
                "tradeoff", budget.tradeoff, "asked for one integer release of sensitivity 1", STATE_POINTS
            )
        return LeastNoise(tradeoff_table(budget.tradeoff), 1, TradeoffCertificateBuilder(budget.tradeoff, asked))
    promise = PrivacyTarget.from_budget(budget)
    if not integer:
        from tightrope.noise.real_noise import least_real_noise

        if not count == 1:
            raise InputError("releases", count, "1 for real-valued noise", "round to fixed point: integer=True")
        return least_real_noise(promise, sensitivity, asked, chosen)
    width = check_integer(
        "sensitivity", sensitivity, remedy="round the answers to fixed point first, or say integer=False"
    )
    bound = CostBound(promise, width, asked)
    if count > 1:
        composed = composed_noise(budget, releases=count, sensitivity=width, cost=cost)
        return LeastNoise(composed.table, width, ComposedProof(ComposedBound(bound, count)))
    if width == 1:
        return LeastNoise(optimal_table(promise.points), 1, SingleReleaseProof(bound, chosen))
    found = least_table(promise, width, bound.error_costs, chosen)
    return LeastNoise(found.table, width, SingleReleaseProof(bound, chosen, found.multipliers))


def composed_limit(
    budget: Budget, *, releases: int, sensitivity: int = 1, cost: str | Callable[[float], float] = "squared"
) -> float:
    """Return a lower bound on the cost of any noise for each of several releases, rounded down (``composed_bound``).

    >>> 102.8 < composed_limit(Budget(epsilon=1, delta=1e-6), releases=10) < 158.6  # that much is reached
    True
    """
    bound = CostBound(
        PrivacyTarget.from_budget(budget), check_integer("sensitivity", sensitivity), ErrorCost.from_argument(cost)
    )
    return ComposedBound(bound, check_integer("releases", releases)).lower_bound


# The least integer noise of sensitivity 1 for any symmetric trade-off function f (theory §4.1).
#
# G_1 is the fixed point of f, G_{k+1} = f(1 − G_k), P(X ≥ k) = G_k. f is a function of floats that is trusted to
# ``ERROR``; every step is rounded to the private side. Where G_k is small, 1 − G_k says little about it: from there
# on the distribution falls geometrically. That keeps f: f(1 − G) is convex in G and 0 at 0, so f(1 − G)/G does not
# increase as G falls. The table that is sampled is checked against f at every vertex of its curve of errors.

ERROR = 2.0**-46
"""Absolute error that f may have."""
SMALL = 2.0**-26
"""Below this G the distribution is geometric."""
MOST_TAILS = 1 << 16
CHECKED_RATES = 257
SHAPE_TOLERANCE = 1e-6
STATEMENT = (
    "For every noise that keeps the trade-off function f at shift 1, P(|X| >= k) >= 2 G_k with G_1 = f(G_1) and "
    "G_(k+1) = f(1 - G_k); so it costs at least phi(0) + 2 sum_k (phi(k) - phi(k-1)) G_k, with G_k at least tails[k-1] "
    "if f is right to within error. Proof: docs/proofs/optimal-noise.md."
)


@dataclass(frozen=True)
class TradeoffCertificateBuilder(CertificateBuilder):
    """One release that meets f."""

    tradeoff: Tradeoff
    cost: ErrorCost

    def build_certificate(self, table: NoiseTable) -> NoiseCertificate:
        tails = _tail_recursion(self.tradeoff, -ERROR)
        upper = certified_cost(table, self.cost)
        whole = [int(Fraction(tail) * ONE) for tail in tails]
        # At the largest finite loss, where δ is the mass of infinite loss.
        loss, atoms = table.loss(1), table.atoms_for_shift(1)
        epsilon = max(0.0, atoms.largest_loss + 2 * atoms.rounding_bound)
        return NoiseCertificate(
            lower=min(upper, cost_from_tails(whole, self.cost)),
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
    rates = np.linspace(0, 1, CHECKED_RATES)
    values = np.array([tradeoff_value(tradeoff, rate) for rate in rates.tolist()])
    _require_shape(bool(np.all(np.diff(values) <= SHAPE_TOLERANCE)), tradeoff, "decreasing")
    _require_shape(bool(np.all(np.diff(values, 2) >= -SHAPE_TOLERANCE)), tradeoff, "convex")
    _require_shape(bool(np.all(values <= 1 - rates + SHAPE_TOLERANCE)), tradeoff, "at most 1 - t: nothing hides more")
    _require_shape(bool(np.any(values[1:-1] > 0)), tradeoff, "above 0 somewhere: else it promises nothing")
    back = [
        (tradeoff_value(tradeoff, v), rate) for v, rate in zip(values.tolist(), rates.tolist(), strict=True) if v > 0
    ]
    slope = 1 + np.max(np.abs(np.diff(values))) * CHECKED_RATES
    far = max(abs(there - rate) for there, rate in back if rate > 0)
    _require_shape(far <= SHAPE_TOLERANCE * slope, tradeoff, "its own inverse (f(f(t)) = t): take max(f, its inverse)")
    tails = _tail_recursion(tradeoff, ERROR)
    raw = [int(Fraction(tail) * ONE) for tail in tails]
    weights = [ONE - 2 * raw[0]] + [a - b for a, b in pairwise(raw)]
    # Beyond the last G the tail falls by f(1 − G)/G, rounded up; it ends there if f is 0.
    following = tradeoff_value(tradeoff, _complement_below(tails[-1]))
    if following == 0:
        table = build_noise_table([*weights, raw[-1]])
    else:
        ratio = max((following + ERROR) / tails[-1] * (1 + 2.0**-50), math.exp(-LARGEST_STEP))
        if not ratio < 1 - 1e-6:
            raise InputError("tradeoff", ratio, "one that falls faster than 1 - t near 1", "measure in coarser units")
        fixed = int(Fraction(ratio) * ONE)
        table = build_noise_table(weights, PlateauTail(raw[-1] * (ONE - fixed) // ONE, fixed))
    if not meets_tradeoff(table, tradeoff, len(tails)):
        raise PrecisionError("the noise could not be shown to keep this trade-off function; is it exact to 1e-14?")
    return table


def meets_tradeoff(table: NoiseTable, tradeoff: Tradeoff, vertices: int) -> bool:
    """Return whether the first vertices (1 − G_k, G_{k+1}) of the table's curve lie above f, by half its error.

    Beyond them f(1 − G)/G does not increase, and the table falls in one ratio.
    """
    tails = [table.survival_probability(k) for k in range(vertices + 1)]
    first = float(tails[0])
    above = first >= tradeoff_value(tradeoff, first) + ERROR / 2 or first >= 0.5
    steps = (
        float(b) >= tradeoff_value(tradeoff, _complement_below(float(a))) + ERROR / 2 for a, b in pairwise(tails) if b
    )
    ended = all(tradeoff_value(tradeoff, _complement_below(float(a))) <= 0 for a, b in pairwise(tails) if a and not b)
    return above and all(steps) and ended


def tradeoff_value(tradeoff: Tradeoff, rate: float) -> float:
    """Return f at one point; raises ``InputError`` if the value is not a number in [0, 1]."""
    try:
        found = float(tradeoff(rate))
    except (TypeError, ValueError, ArithmeticError) as error:
        raise InputError("tradeoff", tradeoff, f"a function with a number at {rate!r}", str(error)) from None
    if not -ERROR <= found <= 1 + ERROR:
        raise InputError("tradeoff", found, f"between 0 and 1 at {rate!r}", "it gives error rates")
    return min(max(found, 0.0), 1.0)


def _complement_below(tail: float) -> float:
    """1 − tail, rounded down: f is larger there."""
    return max(0.0, math.nextafter(1 - tail, 0.0))


def _tail_recursion(tradeoff: Tradeoff, error: float) -> list[float]:
    """G_1, G_2, … down to ``SMALL`` or to where f is 0, each ``error`` larger than computed."""
    upper = error > 0
    side: Side = "passes" if upper else "fails"
    tails = [
        min(0.5, find_crossing(lambda rate: tradeoff_value(tradeoff, rate) - rate, 0.0, 0.5, side=side) + 2 * error)
    ]
    while tails[-1] > SMALL:
        last = tails[-1]
        there = _complement_below(last) if error > 0 else min(1.0, math.nextafter(1 - last, 2.0))
        found = tradeoff_value(tradeoff, there)
        following = min(last, found + error)
        if found == 0 or following <= 0:
            break
        tails.append(following)
        if len(tails) > MOST_TAILS:
            raise InputError(
                "tradeoff", tradeoff, f"one that fewer than {MOST_TAILS} cells keep", "measure in coarser units"
            )
    return tails


def _require_shape(held: bool, tradeoff: Tradeoff, expected: str) -> None:
    if not held:
        raise InputError(
            "tradeoff", tradeoff, expected, "a trade-off function gives the least type-II error at a type-I rate"
        )
