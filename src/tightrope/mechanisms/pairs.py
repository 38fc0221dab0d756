"""Losses without a mechanism: a claimed triple, known points of a profile, a given pair of distributions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, localcontext
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from tightrope.accounting.distributions.atoms import Atoms
from tightrope.accounting.distributions.profile import Profile, ProfileLaw
from tightrope.accounting.privacy_loss import PrivacyLoss
from tightrope.errors import InputError
from tightrope.numerics.arrays import Floats
from tightrope.numerics.checks import filled, finite, non_negative, probability

MASS_ROUNDING = 4e-16
DECIMAL_DIGITS = 400
"""More than e^600 and the least double need together."""
Node = tuple[float, Decimal, Decimal]
"""ε, γ = e^ε and δ there."""


@dataclass(frozen=True, slots=True)
class LossOnly:
    """Something whose privacy loss is known and whose output is not: it has a ``loss`` and no sampler."""

    loss: PrivacyLoss


def approx_dp(epsilon: float, *, delta: float = 0.0, total_variation: float | None = None) -> LossOnly:
    """The dominating pair of every (ε, δ, η)-private mechanism (GI eqs. 43–44, theory §1); it is its own reverse.

    ``k * approx_dp(...).loss`` is GI Theorem 2, with **parameters fixed in advance**. η defaults to its largest
    value δ + (1−δ)tanh(ε/2); a larger one is no constraint, one below δ lowers δ to η. Neighbours: as the claim says.
    Raises ``InputError`` unless ε ≥ 0 and δ, η are probabilities.

    >>> loss = 5 * approx_dp(1, total_variation=0.32348201008200683).loss
    >>> [round(loss.delta(j), 10) for j in range(3)]
    [0.6310896749, 0.4326929785, 0.2393449491]
    """
    epsilon, delta = non_negative("epsilon", epsilon), probability("delta", delta)
    eta = 1.0 if total_variation is None else probability("total_variation", total_variation)
    delta = min(delta, eta)
    if delta == 1 or epsilon == 0:
        law = _atoms({0.0: 1 - delta}, delta, 0.0)
        return LossOnly(PrivacyLoss.of(law, reverse=law))
    active = min(1.0, (eta - delta) / ((1 - delta) * math.tanh(epsilon / 2)))
    top = (1 - delta) * active / (1 + math.exp(-epsilon))
    masses = {epsilon: top, 0.0: (1 - delta) * (1 - active), -epsilon: top * math.exp(-epsilon)}
    law = _atoms(masses, delta, MASS_ROUNDING * epsilon)
    return LossOnly(PrivacyLoss.of(law, reverse=law))


def from_points(points: Sequence[tuple[float, float]]) -> LossOnly:
    """The dominating pair of every mechanism that is (ε_i, δ_i)-private for all given points, in both directions.

    Its profile is the lower convex hull in γ = e^ε of the points, their mirrors (1/γ, 1 − (1−δ)/γ) and (0, 1),
    constant after the last point (theory §1). Raises ``InputError`` for an empty list or values out of range.

    >>> loss = from_points([(1, 1e-6), (0.5, 1e-3)]).loss
    >>> round(loss.delta(0.5), 15), round(loss.delta(1), 15)
    (0.001, 1e-06)
    """
    filled("points", points, "give a list of (epsilon, delta) pairs")
    checked = [_point(pair) for pair in points]
    last = min(checked, key=lambda pair: (pair[1], pair[0]))
    with localcontext(prec=DECIMAL_DIGITS):
        # Vertices of the lower convex hull in γ, from the last one with γ < 1 (or γ = 1) upwards.
        # In decimals: masses are differences of slopes, and between doubles those of nearly collinear points cancel.
        hull_points = [pair for pair in checked if pair[0] <= last[0]]
        given = [(e, Decimal(e).exp(), Decimal(d)) for e, d in hull_points]
        ordered = sorted({*given, *((-e, 1 / gamma, 1 - (1 - d) / gamma) for e, gamma, d in given)})
        kept: list[Node] = [(-math.inf, Decimal(0), Decimal(1))]
        for node in ordered:
            if node[0] == kept[-1][0]:
                continue
            while len(kept) > 1 and _slope(kept[-2], kept[-1]) >= _slope(kept[-1], node):
                kept.pop()
            kept.append(node)
        first = max(i for i, node in enumerate(kept) if node[0] <= 0)
        masses = _masses(kept[first:])
    whole = math.fsum(mass * (1 + math.exp(-epsilon)) for epsilon, mass in masses.items())
    centre = max(0.0, 1 - last[1] - whole)
    mirrored = {-epsilon: mass * math.exp(-epsilon) for epsilon, mass in masses.items()}
    law = _atoms({**masses, **mirrored, 0.0: centre}, last[1], MASS_ROUNDING * last[0])
    law = replace(law, inexact=MASS_ROUNDING)
    return LossOnly(PrivacyLoss.of(law, reverse=law))


def from_profile(
    profile: Profile,
    *,
    reverse: Profile | None = None,
    infinite_mass: float = 0.0,
    relative_error: float = 1e-14,
) -> LossOnly:
    """The loss of a mechanism known by its privacy profile alone: δ(ε) for ε ≥ 0, as a function of arrays, shape [n].

    ``reverse`` is the profile of the other direction; by default both are the same. ``infinite_mass`` is what δ tends
    to. Upper bounds hold for the mechanism where the profile is an upper bound; brackets hold the composition of the
    profile as it was given, to its ``relative_error``. It must fall and be convex in e^ε, with its mirror below 0, and
    agree with ``reverse`` at 0 (every true profile does): that is checked here, at some thousand ε. Raises
    ``InputError`` for one that does not, that leaves [0, 1], or that falls below ``infinite_mass``.

    >>> import numpy as np
    >>> loss = from_profile(lambda epsilon: np.exp(-2 * epsilon) / 8).loss
    >>> round(loss.delta(1), 9), round((10 * loss).delta(1), 4)
    (0.01691691, 0.2832)
    """
    limit, off = probability("infinite_mass", infinite_mass), probability("relative_error", relative_error)
    other = profile if reverse is None else reverse
    law = ProfileLaw.of(profile, other, (limit, limit), off)
    return LossOnly(PrivacyLoss.of(law, reverse=law if other is profile else law.reverse()))


def from_pair(p: ArrayLike, q: ArrayLike) -> LossOnly:
    """The loss of telling distribution ``p`` from ``q``, both of shape [n] over the same outcomes.

    Laws whose sum is within 1e−9 of one are renormalised, others refused (``InputError``). Where it matters which is
    which – ``poisson_sample`` – ``p`` is the output *with* the record and ``q`` the output without it.

    >>> round(from_pair([0.75, 0.25], [0.25, 0.75]).loss.total_variation(), 12)
    0.5
    """
    first, second = _distribution("p", p), _distribution("q", q)
    if first.shape != second.shape:
        raise InputError("q", second.shape, f"of the shape of p, {first.shape}", "list the same outcomes in both")
    scaled = max(_scaled(p), _scaled(q))
    law, other = (Atoms.of_pair(*both, slack=5e-16, inexact=scaled) for both in ((first, second), (second, first)))
    return LossOnly(PrivacyLoss.of(law, reverse=other))


def _distribution(name: str, values: ArrayLike) -> Floats:
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


def _scaled(values: ArrayLike) -> float:
    """Relative error of masses that had to be renormalised; those that add up to one stay as they are."""
    return 0.0 if math.fsum(np.asarray(values, dtype=np.float64)) == 1 else MASS_ROUNDING


def _atoms(masses: dict[float, float], infinite: float, slack: float) -> Atoms:
    losses = np.array(list(masses), dtype=np.float64)
    values = np.array(list(masses.values()), dtype=np.float64)
    return Atoms.gather(losses, values, infinite_mass=infinite, opposite_mass=infinite, slack=slack)


def _point(pair: tuple[float, float]) -> tuple[float, float]:
    try:
        epsilon, delta = pair
    except (TypeError, ValueError):
        raise InputError("point", pair, "a pair (epsilon, delta)") from None
    epsilon, delta = finite("epsilon", epsilon), probability("delta", delta)
    if not abs(epsilon) <= 600:
        raise InputError("epsilon", epsilon, "between -600 and 600", "a point beyond says nothing: leave it out")
    if epsilon >= 0:
        return epsilon, delta
    # A point at negative ε is the mirror of one at positive ε (theory §1).
    return -epsilon, max(0.0, 1 - math.exp(-epsilon) * (1 - delta))


def _slope(left: Node, right: Node) -> Decimal:
    """Slope of the profile in γ between two points."""
    return (right[2] - left[2]) / (right[1] - left[1])


def _masses(hull: list[Node]) -> dict[float, float]:
    """P-mass of each kink at ε > 0: γ times the jump of the slope; the slope after the last point is 0."""
    slopes = [_slope(a, b) for a, b in pairwise(hull)] + [Decimal(0)]
    kinks = zip(hull[1:], slopes, slopes[1:], strict=False)
    return {epsilon: float(gamma * (after - before)) for (epsilon, gamma, _), before, after in kinks if epsilon > 0}
