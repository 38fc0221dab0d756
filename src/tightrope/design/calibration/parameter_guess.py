"""Where a search for a parameter begins: near the answer, at next to no cost.

The Gaussian that just keeps a budget has K(1) = μ² (its Rényi divergence of order two). The parameter at which a loss
has as much is found from that one moment, which costs a thousandth of a δ. It is a guess: nothing rests on it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from scipy import optimize

from tightrope.design.calibration.parameter_root import closed
from tightrope.design.calibration.parameter_search import LARGEST, SMALLEST, MakeLoss, Range, Search, Tried, bracket
from tightrope.errors import InputError, PrecisionError
from tightrope.privacy.laws.gaussian import GaussianLaw
from tightrope.privacy.loss import PrivacyLoss

AT_ONE = np.ones(1, dtype=np.complex128)
ROUGHLY = 0.02
"""How near, relatively, the guess comes to the parameter with that moment."""
FAINTEST_DELTA = 1e-30
"""A smaller δ, or none at all, is taken as this."""
WEAKEST, STRONGEST = math.log(1e-12), math.log(1e3)
"""Between these the logarithm of μ is sought."""


def guessed(make_loss: MakeLoss, points: Iterable[tuple[float, float]], within: Range) -> Range:
    """The same range, with a start near the answer; as it was where the loss does not know the moment."""
    target = 2 * min(_log_mu(epsilon, max(delta, FAINTEST_DELTA)) for epsilon, delta in points)

    def exceeded(loss: PrivacyLoss) -> tuple[float, float]:
        excess = _log_moment(loss) - target
        return excess, excess

    search = Search(make_loss, exceeded, within)
    try:
        good, bad = bracket(search, None)
        if good is not None and bad is not None:
            begin = closed(search, good, bad, ROUGHLY).parameter
            return replace(search.range, begin=begin, falling=good.place > bad.place)
        return _from_end(search.range, good or bad)
    except (InputError, PrecisionError):
        return within


def _from_end(within: Range, end: Tried | None) -> Range:
    """The answer is thought to be at this end: the most useful one, which keeps the budget, or the most private."""
    if end is None or end.parameter in (SMALLEST, LARGEST):
        return within
    return replace(within, begin=end.parameter, falling=(end.parameter == within.high) != end.keeps)


def _log_moment(loss: PrivacyLoss) -> float:
    """Log K(1) of the worse direction; ``PrecisionError`` where it is not known, or leaves an infinite loss out."""
    with np.errstate(all="ignore"):
        known = [direction.log_moment(AT_ONE) for direction in (loss.remove, loss.add)]
    moments = [math.nan if moment is None else float(moment[0].real) for moment in known]
    if loss.infinite_mass > 0 or not all(0 < moment < math.inf for moment in moments):
        raise PrecisionError(f"K(1) of {len(loss.remove.laws)} laws is not known")
    return math.log(max(moments))


def _log_mu(epsilon: float, delta: float) -> float:
    """Log μ of the Gaussian with this δ at ε."""

    def excess(place: float) -> float:
        found = float(GaussianLaw(math.exp(place)).profile(np.array([epsilon]))[0])
        return math.log(max(found, 1e-320)) - math.log(delta)

    if not excess(WEAKEST) < 0 < excess(STRONGEST):
        return WEAKEST if excess(WEAKEST) >= 0 else STRONGEST
    return float(optimize.brentq(excess, WEAKEST, STRONGEST, xtol=1e-3))
