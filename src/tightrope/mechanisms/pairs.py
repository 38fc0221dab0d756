"""Losses without a mechanism: a claimed triple, known points of a profile, a given pair of distributions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, localcontext
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from tightrope.accounting.bounds import TrueValueOf
from tightrope.accounting.distributions.atoms import Atoms
from tightrope.accounting.distributions.base import LossDistribution
from tightrope.accounting.distributions.profile import (
    MomentCurve,
    Profile,
    ProfileLossDistribution,
    RenyiCurve,
    RenyiLossDistribution,
    points_of_upper_bound,
)
from tightrope.accounting.privacy_loss import PrivacyLoss
from tightrope.errors import InputError
from tightrope.numerics.arrays import Floats
from tightrope.numerics.checks import (
    check_finite,
    check_non_negative,
    check_nonempty,
    check_positive,
    check_probability,
)

MASS_ROUNDING = 4e-16
DECIMAL_DIGITS = 400
"""Decimal digits for e^600 and the smallest double together."""
MANY_POINTS, DIGITS_OF_MANY = 256, 100
"""More points than this are dense, and their masses are computed with fewer digits, for speed."""
Node = tuple[float, Decimal, Decimal]
"""ε, γ = e^ε and δ there."""


@dataclass(frozen=True, slots=True)
class LossOnly:
    """A known privacy loss without outputs: it has a ``loss`` and no sampler."""

    loss: PrivacyLoss


def _worst_guaranteed(law: LossDistribution, reverse: LossDistribution) -> LossOnly:
    """Return the loss of a guarantee, which the pair itself has as a mechanism."""
    return LossOnly(PrivacyLoss.from_distribution(law, reverse=reverse, true_value_of=TrueValueOf.GUARANTEES))


def approx_dp(epsilon: float, *, delta: float = 0.0, total_variation: float | None = None) -> LossOnly:
    """Return the dominating pair of all (ε, δ, η)-private mechanisms (GI eqs. 43–44, theory §1), its own reverse.

    ``k * approx_dp(...).loss`` is GI Theorem 2, with **parameters fixed in advance**. η defaults to its largest value δ
    + (1−δ)tanh(ε/2); a larger one has no effect, one below δ lowers δ to η. Neighbors: as in the claim. Raises
    ``InputError`` unless ε ≥ 0 and δ, η are probabilities.

    >>> loss = 5 * approx_dp(1, total_variation=0.32348201008200683).loss
    >>> [round(loss.delta(j), 10) for j in range(3)]
    [0.6310896749, 0.4326929785, 0.2393449491]
    """
    epsilon, delta = check_non_negative("epsilon", epsilon), check_probability("delta", delta)
    eta = 1.0 if total_variation is None else check_probability("total_variation", total_variation)
    delta = min(delta, eta)
    if delta == 1 or epsilon == 0:
        law = _gather_atoms({0.0: 1 - delta}, delta, 0.0)
        return _worst_guaranteed(law, law)
    active = min(1.0, (eta - delta) / ((1 - delta) * math.tanh(epsilon / 2)))
    top = (1 - delta) * active / (1 + math.exp(-epsilon))
    masses = {epsilon: top, 0.0: (1 - delta) * (1 - active), -epsilon: top * math.exp(-epsilon)}
    law = _gather_atoms(masses, delta, MASS_ROUNDING * epsilon)
    return _worst_guaranteed(law, law)


def from_points(points: Sequence[tuple[float, float]]) -> LossOnly:
    """Return the dominating pair of every mechanism that is (ε_i, δ_i)-private for all points, in both directions.

    Its profile is the lower convex hull in γ = e^ε of the points, their mirrors (1/γ, 1 − (1−δ)/γ) and (0, 1),
    constant after the last point (theory §1). Raises ``InputError`` for an empty list or values out of range.

    >>> loss = from_points([(1, 1e-6), (0.5, 1e-3)]).loss
    >>> round(loss.delta(0.5), 15), round(loss.delta(1), 15)
    (0.001, 1e-06)
    """
    check_nonempty("points", points, "give a list of (epsilon, delta) pairs")
    checked = [_point_at_positive_epsilon(pair) for pair in points]
    last = min(checked, key=lambda pair: (pair[1], pair[0]))
    with localcontext(prec=DECIMAL_DIGITS if len(checked) <= MANY_POINTS else DIGITS_OF_MANY):
        # Vertices of the lower convex hull in γ, from the last one with γ < 1 (or γ = 1) upwards. In decimals, because
        # masses are differences of slopes, which cancel in doubles for nearly collinear points.
        hull_points = [pair for pair in checked if pair[0] <= last[0]]
        given = [(e, Decimal(e).exp(), Decimal(d)) for e, d in hull_points]
        ordered = sorted({*given, *((-e, 1 / gamma, 1 - (1 - d) / gamma) for e, gamma, d in given)})
        hull: list[Node] = [(-math.inf, Decimal(0), Decimal(1))]
        for node in ordered:
            if node[0] == hull[-1][0]:
                continue
            while len(hull) > 1 and _profile_slope(hull[-2], hull[-1]) >= _profile_slope(hull[-1], node):
                hull.pop()
            hull.append(node)
        # The P-mass of each kink after the first: γ times the jump of the slope; the slope ends at 0.
        kept = hull[sum(node[0] <= 0 for node in hull) - 1 :]
        slopes = [_profile_slope(a, b) for a, b in pairwise(kept)] + [Decimal(0)]
        kinks = zip(kept[1:], slopes, slopes[1:], strict=False)
        masses = {epsilon: float(gamma * (after - before)) for (epsilon, gamma, _), before, after in kinks}
    whole = math.fsum(mass * (1 + math.exp(-epsilon)) for epsilon, mass in masses.items())
    center = max(0.0, 1 - last[1] - whole)
    mirrored = {-epsilon: mass * math.exp(-epsilon) for epsilon, mass in masses.items()}
    law = _gather_atoms({**masses, **mirrored, 0.0: center}, last[1], MASS_ROUNDING * last[0])
    law = replace(law, relative_mass_error=MASS_ROUNDING)
    return _worst_guaranteed(law, law)


def _point_at_positive_epsilon(pair: tuple[float, float]) -> tuple[float, float]:
    """Return a checked point; one at negative ε is the mirror of one at positive ε (theory §1)."""
    try:
        epsilon, delta = pair
    except (TypeError, ValueError):
        raise InputError("point", pair, "a pair (epsilon, delta)") from None
    epsilon, delta = check_finite("epsilon", epsilon), check_probability("delta", delta)
    if not abs(epsilon) <= 600:
        raise InputError("epsilon", epsilon, "between -600 and 600", "leave out points beyond this range")
    return (epsilon, delta) if epsilon >= 0 else (-epsilon, max(0.0, 1 - math.exp(-epsilon) * (1 - delta)))


def from_profile(
    profile: Profile,
    *,
    reverse: Profile | None = None,
    infinite_mass: float = 0.0,
    relative_error: float = 1e-14,
    upper_bound: bool = False,
) -> LossOnly:
    """Return the loss of a mechanism given only its privacy profile δ(ε) for ε ≥ 0, a function of arrays, shape [n].

    ``reverse`` is the profile of the other direction; by default both are the same. ``infinite_mass`` is the limit of
    δ. Upper bounds hold for the mechanism if the profile is an upper bound; brackets hold for the composition of the
    given profile, up to its ``relative_error``. The profile must be decreasing and convex in e^ε, with its mirror below
    0, and agree with ``reverse`` at 0 (every true profile does): this is checked at some thousand ε.

    With ``upper_bound=True`` the function need only be an upper bound for both directions, such as the minimum over
    orders that follows from zCDP or Rényi privacy: the result is ``from_points`` of two thousand of its points, their
    lower convex hull. It is above the function by about 1e-3 of δ at most, and below it where that is not convex.
    Raises ``InputError`` if a check fails, if the profile leaves [0, 1], or if it drops below
    ``infinite_mass``.

    >>> import numpy as np
    >>> loss = from_profile(lambda epsilon: np.exp(-2 * epsilon) / 8).loss
    >>> round(loss.delta(1), 9), round((10 * loss).delta(1), 4)
    (0.01691691, 0.2832)

    A mechanism of which is only known that it is 0.1-zCDP (its Rényi divergence of order a is at most 0.1 a):

    >>> def bound(epsilon):
    ...     a = 1 + np.geomspace(0.01, 1e4, 500)[:, None]
    ...     log_delta = (a - 1) * (0.1 * a - epsilon) - np.log(a - 1) + a * np.log1p(-1 / a)
    ...     return np.exp(np.minimum(log_delta.min(axis=0), 0.0))
    >>> round(from_profile(bound, upper_bound=True).loss.epsilon(1e-6), 3)
    2.142
    """
    limit, off = check_probability("infinite_mass", infinite_mass), check_probability("relative_error", relative_error)
    if upper_bound:
        if reverse is not None:
            remedy = "an upper bound is for both directions: pass the larger of both functions"
            raise InputError("reverse", reverse, "left out if upper_bound is given", remedy)
        return from_points(points_of_upper_bound(profile, limit, off))
    other = profile if reverse is None else reverse
    law = ProfileLossDistribution.from_profiles(profile, other, (limit, limit), off)
    return _worst_guaranteed(law, law if other is profile else law.reverse_distribution())


def from_rdp(curve: Sequence[tuple[float, float]] | RenyiCurve) -> LossOnly:
    """Return the loss of a mechanism of which only bounds on its Rényi divergences are known, in both orders.

    ``curve``: pairs (α, ε), α > 1, each of which says that the Rényi divergence of order α is at most ε nats; α = ∞ for
    a bound on all losses. Or a function from an array of orders to such bounds, shape [n]; ∞ for an unknown one.
    Between two pairs (α − 1) D_α is convex, so that its chord is a bound.

    The profile is the least of the bounds e^{(α−1)(D_α − ε)} (α−1)^{α−1} / α^α over all α > 1. Losses of this kind are
    added by adding their divergences; with other losses this one composes as the dominating pair of its profile
    (``docs/proofs/renyi.md``). Neighbors: as in the claim. Raises ``InputError`` for an empty list, an order of at most
    1, or a bound that is negative or not a number.

    >>> loss = from_rdp([(2, 0.2), (8, 0.8), (32, 3.2)]).loss
    >>> round(loss.epsilon(1e-6), 6), round((10 * loss).epsilon(1e-6), 6)
    (2.34305, 9.54305)
    """
    if callable(curve):
        return _implied_by_moments(MomentCurve.from_function(curve))
    check_nonempty("curve", curve, "give a list of (alpha, epsilon) pairs, or a function of alpha")
    bounds: dict[float, float] = {}
    for pair in curve:
        try:
            alpha, epsilon = pair
        except (TypeError, ValueError):
            raise InputError("curve", pair, "pairs (alpha, epsilon)") from None
        order = math.inf if alpha == math.inf else check_finite("alpha", alpha)
        if not order > 1:
            raise InputError("alpha", alpha, "an order above 1")
        divergence = check_non_negative("epsilon", epsilon)
        bounds[order - 1] = min(divergence, bounds.get(order - 1, math.inf))
    orders = np.array(sorted(order for order in bounds if order < math.inf))
    moments = np.array([order * bounds[order] for order in orders.tolist()])
    return _implied_by_moments(MomentCurve.from_values(orders, moments, bounds.get(math.inf, math.inf)))


def from_zcdp(rho: float) -> LossOnly:
    """Return the loss of a mechanism of which only ρ-zCDP is known: its Rényi divergences are at most ρ α, α > 1.

    ``k * from_zcdp(rho).loss`` is that of k ρ. A Gaussian mechanism loses less than this: see ``from_rdp``. Raises
    ``InputError`` unless ρ ≥ 0.

    >>> loss = from_zcdp(0.1).loss
    >>> round(loss.epsilon(1e-6), 6), round(loss.zcdp(), 12)
    (2.141939, 0.1)
    """
    bound = check_non_negative("rho", rho)
    return _implied_by_moments(MomentCurve.from_function(lambda alpha: bound * alpha, bound))


def _implied_by_moments(curve: MomentCurve) -> LossOnly:
    return LossOnly(PrivacyLoss.from_distribution(RenyiLossDistribution.from_curve(curve)))


def from_pair(p: ArrayLike, q: ArrayLike) -> LossOnly:
    """Return the loss of distinguishing distribution ``p`` from ``q``, both of shape [n] over the same outcomes.

    Distributions whose sum is within 1e−9 of one are renormalized, others refused (``InputError``). If the order
    matters – ``poisson_sample`` – ``p`` is the output *with* the record and ``q`` the output without it.

    >>> round(from_pair([0.75, 0.25], [0.25, 0.75]).loss.total_variation(), 12)
    0.5
    """
    first, second = _parse_distribution("p", p), _parse_distribution("q", q)
    if first.shape != second.shape:
        raise InputError("q", second.shape, f"of the shape of p, {first.shape}", "list the same outcomes in both")
    scaled = max(_renormalization_error(p), _renormalization_error(q))
    law, other = (
        Atoms.from_pair(*both, rounding_error_bound=5e-16, mass_error=scaled)
        for both in ((first, second), (second, first))
    )
    return LossOnly(PrivacyLoss.from_distribution(law, reverse=other, true_value_of=TrueValueOf.MECHANISMS))


def mixture_of_gaussians(sensitivities: ArrayLike, probabilities: ArrayLike, *, scale: float) -> LossOnly:
    """Return the loss of Gaussian noise on a query that changes by ``sensitivities[i]`` with ``probabilities[i]``.

    P = Σ p_i N(s_i, scale²) against Q = N(0, scale²), and the reverse (theory §3.2). With vectors instead of numbers,
    their norms give an upper bound. ``poisson_sample(rate).group(m)`` is the case of Binomial(m, rate). Probabilities
    whose sum is within 1e−9 of one are renormalized, others refused. Raises ``InputError`` unless the scale is positive
    and there are at most 1,000 sensitivities, each 0 or from 1e-12 to 1,000 times the scale.

    >>> round(mixture_of_gaussians([0, 1, 3], [0.9, 0.09, 0.01], scale=2).loss.total_variation(), 12)
    0.022797973598
    """
    from tightrope.accounting.distributions.gaussian_mixture import (
        MAX_COMPONENTS,
        MAX_SHIFT,
        MIN_SHIFT,
        mixture_distribution,
    )

    width, weights = check_positive("scale", scale), _parse_distribution("probabilities", probabilities)
    shifts = np.asarray(sensitivities, dtype=np.float64)
    if shifts.shape != weights.shape:
        raise InputError("sensitivities", shifts.shape, f"of the shape of probabilities, {weights.shape}")
    if not np.all((shifts == 0) | ((shifts >= MIN_SHIFT * width) & (shifts <= MAX_SHIFT * width))):
        allowed = f"0, or from {MIN_SHIFT:g} to {MAX_SHIFT:g} times the scale each"
        raise InputError("sensitivities", shifts.tolist(), allowed)
    if not len(shifts) <= MAX_COMPONENTS:
        raise InputError("sensitivities", len(shifts), f"at most {MAX_COMPONENTS} numbers", "join similar ones")
    log_weights = [math.log(weight) if weight > 0 else -math.inf for weight in weights.tolist()]
    law, other = (
        mixture_distribution((shifts / width).tolist(), log_weights, remove=remove) for remove in (True, False)
    )
    return LossOnly(PrivacyLoss.from_distribution(law, reverse=other, true_value_of=TrueValueOf.MECHANISMS))


def _parse_distribution(name: str, values: ArrayLike) -> Floats:
    try:
        law = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InputError(name, values, "a list of probabilities") from None
    if law.ndim != 1 or law.size == 0:
        raise InputError(name, law.shape, "a list of probabilities, shape [n]")
    if not np.all(law >= 0):
        raise InputError(name, float(np.min(law)), "a list of probabilities, none negative or NaN")
    total = math.fsum(law)
    if not abs(total - 1) <= 1e-9:
        raise InputError(f"sum of {name}", total, "1 within 1e-9")
    return np.asarray(law / total)


def _renormalization_error(values: ArrayLike) -> float:
    """Return the relative error of renormalized masses; masses that add up to one are unchanged."""
    return 0.0 if math.fsum(np.asarray(values, dtype=np.float64)) == 1 else MASS_ROUNDING


def _gather_atoms(masses: dict[float, float], infinite: float, slack: float) -> Atoms:
    losses = np.array(list(masses), dtype=np.float64)
    values = np.array(list(masses.values()), dtype=np.float64)
    return Atoms.merge_losses(
        losses, values, infinite_mass=infinite, reverse_infinity_mass=infinite, rounding_error_bound=slack
    )


def _profile_slope(left: Node, right: Node) -> Decimal:
    """Return the slope of the profile in γ between two points."""
    return (right[2] - left[2]) / (right[1] - left[1])
