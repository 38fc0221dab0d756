"""The least noise, the most steps or the largest sample that a budget allows, in a handful of evaluations.

Every point (ε_i, δ_i) of a budget is put on the scale of standard deviations, Φ⁻¹(δ(ε_i)) − Φ⁻¹(δ_i): there the loss
of noise is nearly linear in its size, from δ near one down to 10⁻³⁰⁰. The largest of these differences, the *excess*,
is negative exactly where all points hold; its root is bracketed (``parameter_search``) and closed in on
(``parameter_root``) in the logarithm of the parameter.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

from scipy import special

from tightrope.certificates.budget import Budget, at_most
from tightrope.design.calibration.parameter_guess import guessed
from tightrope.design.calibration.parameter_root import closed
from tightrope.design.calibration.parameter_search import (
    LARGEST,
    MOST,
    SMALLEST,
    MakeLoss,
    Range,
    Search,
    Tried,
    bracket,
)
from tightrope.errors import BudgetRefused, InputError, PrecisionWarning
from tightrope.numerics.checks import positive, whole
from tightrope.privacy.loss import PrivacyLoss

SIZE_TOLERANCE = 1e-9
FLOOR = -760.0
"""Log δ of what is exactly zero, or asked to be."""
WIDE_ANSWER = 1e-3
"""Brackets at the answer that are wider than this part of what is allowed are warned of."""
FAINT_DELTA = 1e-290
"""What stands for an allowed δ of zero where it divides; less than this is next to nothing."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """What ``calibrate`` found: the parameter, the loss there (it keeps the budget), and how many losses were made."""

    parameter: float
    loss: PrivacyLoss = field(repr=False)
    evaluations: int


def calibrate(
    make_loss: MakeLoss,
    budget: Budget,
    *,
    smallest: float | None = None,
    largest: float | None = None,
    integer: bool = False,
    increasing: bool | None = None,
    tolerance: float = SIZE_TOLERANCE,
) -> Calibration:
    """The most useful parameter whose loss keeps every point of a budget: smallest scale, or largest count or rate.

    ``make_loss(parameter)`` is a ``PrivacyLoss``. ``increasing`` says whether it grows with the parameter (a number of
    steps, a sampling rate) or falls (a scale); left out, two evaluations decide. The parameter is sought between
    ``smallest`` and ``largest`` (10⁻¹² to 10¹²; whole numbers, with ``integer=True``, 1 to 10⁹), outwards from 1; an
    end of this range is the answer where it is the most useful one and keeps the budget. An end that is left out may
    be nearer: where ``make_loss`` raises ``InputError``, the range ends. So a sampling rate needs none.

    **The private side.** The loss that is returned was shown to keep every point, by its upper bound ``delta``: total
    variation and the cap on infinite loss included, the budget's decimals rounded down. A parameter that is
    ``tolerance`` (relative; one, for whole numbers) more useful was shown not to. That nothing still more useful
    keeps the budget is true where the loss is monotone in the parameter, which is assumed and not checked: a table
    that is cut off, or a bound that is loose in places, may break it by a little. What is returned is private even
    then. Usually 6 to 12 evaluations.

    Neighbours: whatever the loss speaks of. Raises ``InputError`` for nonsense, ``BudgetRefused`` where nothing in the
    range keeps the budget.

    >>> import tightrope as tr
    >>> budget = tr.Budget(epsilon=1, delta=1e-6)
    >>> found = calibrate(lambda scale: 100 * tr.gaussian(scale=scale).loss, budget)
    >>> round(found.parameter, 6), found.loss.delta(1) <= 1e-6, found.evaluations <= 12
    (42.246789, True, True)
    >>> calibrate(lambda steps: steps * tr.gaussian(scale=50).loss, budget, integer=True).parameter
    140
    >>> rate = calibrate(lambda rate: 1000 * tr.gaussian(scale=1).loss.poisson_sample(rate), budget).parameter
    >>> round(rate, 6)
    0.004871
    """
    if not callable(make_loss):
        raise InputError("make_loss", make_loss, "a function from a parameter to a PrivacyLoss")
    question, tolerance = _Question.of(budget), positive("tolerance", tolerance, "1e-9 is usual")
    within = guessed(make_loss, question.points, _range(smallest, largest, integer))
    search = Search(make_loss, question.exceeded, within)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrecisionWarning)  # of parameters that are not the answer
        good, bad = bracket(search, increasing)
        found = closed(search, good, bad, tolerance) if good is not None and bad is not None else good
        if found is None:
            raise question.refused(cast(Tried, bad))
        wide = question.wide(found.loss)
    for epsilon in wide:
        found.loss.delta(epsilon)  # known by now: once more for what it warns of
    return Calibration(found.parameter, found.loss, len(search.seen))


@dataclass(frozen=True, slots=True)
class _Question:
    """What a loss must keep: points, and the cap on infinite loss."""

    points: tuple[tuple[float, float], ...]
    cap: float

    @classmethod
    def of(cls, budget: object) -> _Question:
        """None above the budget's decimals."""
        if not isinstance(budget, Budget):
            raise InputError("budget", budget, "a Budget", "try tightrope.Budget(epsilon=1, delta=1e-6)")
        return cls(budget.rounded, at_most(budget.delta))

    def exceeded(self, loss: PrivacyLoss) -> tuple[float, float]:
        """By how much the worst point is exceeded, in standard deviations and in multiples of what is allowed.

        The cap on infinite loss is one of the points.
        """
        spent = [*loss.delta([epsilon for epsilon, _ in self.points]).tolist(), loss.infinite_mass]
        pairs = list(zip(spent, [*(most for _, most in self.points), self.cap], strict=True))
        return max(_beyond(*pair) for pair in pairs), max(_multiple(*pair) for pair in pairs)

    def wide(self, loss: PrivacyLoss) -> list[float]:
        """Where the bracket of δ may hide how much more would have been allowed."""
        brackets = [(epsilon, most, loss.delta_bounds(epsilon)) for epsilon, most in self.points]
        return [epsilon for epsilon, most, found in brackets if found.upper - found.lower > WIDE_ANSWER * most]

    def refused(self, best: Tried) -> BudgetRefused:
        """What is possible at the most private end of the range."""
        reached = [(f"delta({epsilon!r})", best.loss.delta(epsilon), delta) for epsilon, delta in self.points]
        asked = [*reached, ("certain failure", best.loss.infinite_mass, self.cap)]
        broken = " and ".join(f"{name} is {value:.3g}, not {most:.3g}" for name, value, most in asked if value > most)
        return BudgetRefused(
            f"no parameter in the range keeps the budget: at its most private end, {best.parameter!r}, {broken}; "
            "widen the range or raise the budget"
        )


def _range(smallest: float | None, largest: float | None, integer: bool) -> Range:
    """The ends of the range; ``InputError`` where nothing lies between them."""
    check: Callable[[str, object], float] = whole if integer else positive
    low = check("smallest", (1 if integer else SMALLEST) if smallest is None else smallest)
    high = check("largest", (MOST if integer else LARGEST) if largest is None else largest)
    if not low < high:
        raise InputError("largest", high, f"above smallest={low!r}", "nothing lies between them")
    return Range(low, high, (smallest is not None, largest is not None), integer)


def _beyond(delta: float, allowed: float) -> float:
    """Φ⁻¹(δ) − Φ⁻¹(allowed), with the sign of δ − allowed whatever the rounding; far below where both are zero."""
    if delta == 0 or delta < FAINT_DELTA <= allowed:  # what is left of nothing by rounding says nothing
        return _deviations(0) - (_deviations(allowed) if allowed else 0.0)
    if delta <= allowed:
        return min(0.0, _deviations(delta) - _deviations(allowed))
    return max(math.ulp(0.0), _deviations(delta) - _deviations(allowed))


def _multiple(delta: float, allowed: float) -> float:
    """(δ − allowed) / allowed; δ itself over ``FAINT_DELTA`` where nothing is allowed."""
    return (delta - allowed) / max(allowed, FAINT_DELTA)


def _deviations(delta: float) -> float:
    """Φ⁻¹(δ), finite everywhere."""
    log = max(math.log(delta), FLOOR) if delta > 0 else FLOOR
    return float(special.ndtri_exp(min(log, -1e-16)))
