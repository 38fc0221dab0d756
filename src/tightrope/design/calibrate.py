"""The least noise, the most steps or the largest sample that a budget allows, in a handful of evaluations.

Every point (ε_i, δ_i) of a budget is put on the scale of standard deviations, Φ⁻¹(δ(ε_i)) − Φ⁻¹(δ_i): there the loss
of noise is nearly linear in its size, from δ near one down to 10⁻³⁰⁰. The largest of these differences, the *excess*,
is negative exactly where all points hold; its root is bracketed and closed in on in the logarithm of the parameter.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from scipy import special

from tightrope.certificates.budget import Budget
from tightrope.design.calibration import below
from tightrope.errors import BudgetRefused, InputError, PrecisionError
from tightrope.numerics.checks import positive, whole
from tightrope.privacy.loss import PrivacyLoss

SMALLEST, LARGEST, MOST = 1e-6, 1e6, 10**9
"""Where a parameter is sought unless the caller says; whole numbers from 1 to ``MOST``."""
TOLERANCE = 1e-9
MOST_EVALUATIONS = 400
FARTHEST_STEP = math.log(16.0)
"""A parameter is not multiplied by more than 16 at once: laws far from the answer are slow, or cannot be computed."""
FLOOR = -760.0
"""Log δ of what is exactly zero, or asked to be."""

MakeLoss = Callable[[Any], PrivacyLoss]


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
    tolerance: float = TOLERANCE,
) -> Calibration:
    """The most useful parameter whose loss keeps every point of a budget: smallest scale, or largest count or rate.

    ``make_loss(parameter)`` is a ``PrivacyLoss``. ``increasing`` says whether it grows with the parameter (a number of
    steps, a sampling rate) or falls (a scale); left out, two evaluations decide. The parameter is sought between
    ``smallest`` and ``largest`` (10⁻⁶ to 10⁶; whole numbers, with ``integer=True``, 1 to 10⁹); an end of this range
    is the answer where it is the most useful one and keeps the budget.

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
    """
    if not callable(make_loss):
        raise InputError("make_loss", make_loss, "a function from a parameter to a PrivacyLoss")
    points, cap = _asked(budget)
    tolerance = positive("tolerance", tolerance, "1e-9 is usual")
    search = _Search(make_loss, points, cap, _range(smallest, largest, integer), integer)
    good, bad = _bracket(search, increasing)
    return search.result(good if bad is None else _closed(search, good, bad, tolerance))


@dataclass(frozen=True, slots=True)
class _Tried:
    """A parameter with its logarithm, its loss, and by how much it exceeds the budget."""

    parameter: float
    place: float
    loss: PrivacyLoss
    excess: float

    @property
    def keeps(self) -> bool:
        return self.excess <= 0

    def above(self, other: _Tried) -> float:
        """Positive where this one is less private: by the excess, and where that is equal by the total variation."""
        apart = self.excess - other.excess
        return apart or self.loss.total_variation() - other.loss.total_variation()


@dataclass(slots=True)
class _Search:
    """The question, and how often it was put."""

    make_loss: MakeLoss
    points: tuple[tuple[float, float], ...]
    cap: float
    ends: tuple[float, float]
    integer: bool
    evaluations: int = 0

    def at(self, place: float) -> _Tried:
        """The parameter nearest to e^place inside the range, and whether it keeps the budget."""
        if self.evaluations >= MOST_EVALUATIONS:
            raise PrecisionError(f"no answer after {self.evaluations} evaluations; is the loss monotone?")
        self.evaluations += 1
        parameter = self._inside(place)
        loss = self.make_loss(parameter)
        if not isinstance(loss, PrivacyLoss):
            remedy = "a mechanism has one: return mechanism.loss"
            raise InputError(f"make_loss({parameter!r})", loss, "a PrivacyLoss", remedy)
        return _Tried(parameter, math.log(parameter), loss, self._excess(loss))

    def _inside(self, place: float) -> float:
        """Ends of the range exactly, although their logarithms are rounded."""
        for end in self.ends:
            if place == math.log(end):
                return end
        return round(math.exp(place)) if self.integer else math.exp(place)

    def _excess(self, loss: PrivacyLoss) -> float:
        """The worst point, in standard deviations; the cap on infinite loss is one of them."""
        found = [_beyond(loss.delta(epsilon), delta) for epsilon, delta in self.points]
        return max(*found, _beyond(loss.infinite_mass, self.cap))

    def near(self, good: _Tried, bad: _Tried, tolerance: float) -> bool:
        """Whether the ends of a bracket are near enough: neighbours, for whole numbers."""
        apart = abs(good.parameter - bad.parameter)
        return apart <= 1 if self.integer else abs(good.place - bad.place) <= tolerance

    def gap(self, tolerance: float, good: _Tried) -> float:
        """How near that is, in logarithms."""
        return math.log1p(1 / good.parameter) if self.integer else tolerance

    def result(self, found: _Tried) -> Calibration:
        return Calibration(found.parameter, found.loss, self.evaluations)

    def refused(self, best: _Tried) -> BudgetRefused:
        """What is possible at the most private end of the range."""
        reached = [(f"delta({epsilon!r})", best.loss.delta(epsilon), delta) for epsilon, delta in self.points]
        asked = [*reached, ("certain failure", best.loss.infinite_mass, self.cap)]
        broken = " and ".join(f"{name} is {value:.3g}, not {most:.3g}" for name, value, most in asked if value > most)
        return BudgetRefused(
            f"no parameter in the range keeps the budget: at its most private end, {best.parameter!r}, {broken}; "
            "widen the range or raise the budget"
        )


def _asked(budget: object) -> tuple[tuple[tuple[float, float], ...], float]:
    """Points and the cap on infinite loss, none above the budget's decimals."""
    if not isinstance(budget, Budget):
        raise InputError("budget", budget, "a Budget", "try tightrope.Budget(epsilon=1, delta=1e-6)")
    return tuple((below(epsilon), below(delta)) for epsilon, delta in budget.points), below(budget.delta)


def _range(smallest: float | None, largest: float | None, integer: bool) -> tuple[float, float]:
    """The ends of the range; ``InputError`` where nothing lies between them."""
    check: Callable[[str, object], float] = whole if integer else positive
    low = check("smallest", (1 if integer else SMALLEST) if smallest is None else smallest)
    high = check("largest", (MOST if integer else LARGEST) if largest is None else largest)
    if not low < high:
        raise InputError("largest", high, f"above smallest={low!r}", "nothing lies between them")
    return low, high


def _beyond(delta: float, allowed: float) -> float:
    """Φ⁻¹(δ) − Φ⁻¹(allowed), with the sign of δ − allowed whatever the rounding; far below where both are zero."""
    if delta == 0:
        return _deviations(0) - (_deviations(allowed) if allowed else 0.0)
    if delta <= allowed:
        return min(0.0, _deviations(delta) - _deviations(allowed))
    return max(math.ulp(0.0), _deviations(delta) - _deviations(allowed))


def _deviations(delta: float) -> float:
    """Φ⁻¹(δ), finite everywhere."""
    log = max(math.log(delta), FLOOR) if delta > 0 else FLOOR
    return float(special.ndtri_exp(min(log, -1e-16)))


def _bracket(search: _Search, increasing: bool | None) -> tuple[_Tried, _Tried | None]:
    """A parameter that keeps the budget beside one that does not; None beside the most useful end of the range.

    Walks from the middle of the range towards the root, by the secant of the last two and never too far at once.
    """
    low, high = (math.log(end) for end in search.ends)
    before = search.at((low + high) / 2)
    here = search.at(min(before.place + math.log(2.0), high))
    falls = not increasing if increasing is not None else _falls(search, before, here, (low, high))
    if before.keeps == here.keeps:
        return _walked(search, before, here, (low, high) if falls else (high, low))
    return (here, before) if here.keeps else (before, here)


def _falls(search: _Search, first: _Tried, second: _Tried, ends: tuple[float, float]) -> bool:
    """Whether the loss falls with the parameter: from two evaluations, or more where these are alike."""
    others = [second.place, *_outwards(second.place, ends[1]), *_outwards(first.place, ends[0])]
    for place in others:
        other = second if place == second.place else search.at(place)
        if more := other.above(first):
            return (more < 0) == (other.place > first.place)
    remedy = "widen the range, or say increasing=True or increasing=False"
    raise InputError("make_loss", first.loss, "a loss that depends on the parameter", remedy)


def _outwards(place: float, end: float) -> Iterator[float]:
    """Places on the way to an end of the range."""
    while place != end:
        place = end if abs(end - place) <= FARTHEST_STEP else place + math.copysign(FARTHEST_STEP, end - place)
        yield place


def _walked(search: _Search, first: _Tried, second: _Tried, ends: tuple[float, float]) -> tuple[_Tried, _Tried | None]:
    """From two parameters on one side of the root across it; ``ends`` are the most useful and the most private."""
    end = ends[0] if first.keeps else ends[1]
    before, here = sorted((first, second), key=lambda tried: -abs(tried.place - end))
    while here.keeps == first.keeps:
        if here.place == end:
            if not here.keeps:
                raise search.refused(here)
            return here, None
        before, here = here, search.at(_stride(before, here, end))
    return (before, here) if before.keeps else (here, before)


def _stride(before: _Tried, here: _Tried, end: float) -> float:
    """A little beyond where the secant meets zero, between once and sixteen times, and not beyond the end."""
    fallen = before.excess - here.excess
    ratio = here.excess / fallen if fallen and here.excess / fallen > 0 else math.inf
    length = min(max(1.05 * ratio * abs(here.place - before.place), 1e-3), FARTHEST_STEP)
    return end if abs(end - here.place) <= length else here.place + math.copysign(length, end - here.place)


def _closed(search: _Search, good: _Tried, bad: _Tried, tolerance: float) -> _Tried:
    """The end that keeps the budget of a bracket that was narrowed to the tolerance.

    Inverse quadratic interpolation through the last three, the secant where that leaves the bracket, and the middle
    after two steps in a row that did not halve it.
    """
    older, slow = bad, 0
    while not search.near(good, bad, tolerance):
        middle, width = (good.place + bad.place) / 2, abs(good.place - bad.place)
        place = middle if slow >= 2 else _between(good, bad, older, search.gap(tolerance, good))
        tried = search.at(_strictly(search, place, good, bad))
        older, good, bad = (good, tried, bad) if tried.keeps else (bad, good, tried)
        slow = slow + 1 if abs(good.place - bad.place) > width / 2 else 0
    return good


def _between(good: _Tried, bad: _Tried, older: _Tried, gap: float) -> float:
    """The interpolated root; pushed across it where it lies at an end, so that the other end follows."""
    root = _quadratic(good, bad, older)
    low, high = sorted((good.place, bad.place))
    if root is None or not low < root < high:
        root = good.place - good.excess * (bad.place - good.place) / (bad.excess - good.excess)
    return min(max(root, low + 0.9 * gap), high - 0.9 * gap) if high - low > 2 * gap else (low + high) / 2


def _quadratic(good: _Tried, bad: _Tried, older: _Tried) -> float | None:
    """Lagrange's formula for the place as a function of the excess, at zero; None where two excesses agree."""
    a, b, c = good.excess, bad.excess, older.excess
    if len({a, b, c}) < 3:
        return None
    return (
        good.place * (b * c) / ((a - b) * (a - c))
        + bad.place * (a * c) / ((b - a) * (b - c))
        + older.place * (a * b) / ((c - a) * (c - b))
    )


def _strictly(search: _Search, place: float, good: _Tried, bad: _Tried) -> float:
    """For whole numbers, one that lies strictly between the two."""
    if not search.integer:
        return place
    low, high = sorted((good.parameter, bad.parameter))
    return math.log(min(max(round(math.exp(place)), low + 1), high - 1))
