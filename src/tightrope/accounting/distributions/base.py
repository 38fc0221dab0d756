"""One direction of a dominating pair, as the law of its privacy loss L = log dP/dQ under P.

A law says what every engine may ask for; each engine takes what it can use. Losses are in nats.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tightrope.numerics.arrays import Complexes, Floats
from tightrope.numerics.rounding import ROUND_OFF

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tightrope.accounting.distributions.loss_cells import Cells

# What Laplace-type losses have in common: tilted by e^{−l/2} they are two equal atoms and a uniform density.


class Flat(NamedTuple):
    """A loss tilted by e^{−l/2}: ``atom`` at −ε and +ε each, ``spread`` uniformly between."""

    epsilon: float
    atom: float
    spread: float

    @property
    def whole(self) -> float:
        """M = 2a + b, the mass under the tilted law: E e^{−L/2}."""
        return 2 * self.atom + self.spread

    @property
    def odds(self) -> float:
        """Of the density against both atoms."""
        return self.spread / (2 * self.atom) if self.atom > 0 else math.inf


Ends = tuple[Floats, Floats]
"""A lower and an upper bound of each number, shape [n] both."""


class LossLaw(ABC):
    """Law of the privacy loss of one ordered pair (P, Q), under P.

    ``infinite_mass`` is P(L = +∞): the probability of an output that Q never gives.
    ``opposite_mass`` is Q(L = −∞): the probability under Q of an output that P never gives.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def infinite_mass(self) -> float: ...

    @property
    @abstractmethod
    def opposite_mass(self) -> float: ...

    @property
    @abstractmethod
    def largest(self) -> float:
        """Supremum of the finite losses; ∞ where they are unbounded."""

    @abstractmethod
    def cells(self, step: float) -> Cells:
        """The law cut into cells no wider than ``step`` nats, at most ``MOST_LOSS_CELLS``; atoms have width zero."""

    def between(self, step: float, low: float, high: float) -> Cells:
        """Cells no wider than ``step`` from ``low`` to ``high``, and of any width elsewhere."""
        del low, high
        return self.cells(step)

    def cut(self, edges: Floats) -> Cells | None:
        """The law cut at these losses (ascending), and where it must be; None where it cannot be cut at will."""
        del edges
        return None

    def evenly(self, count: int) -> Cells:
        """About so many cells, narrow where losses lie close together: of a sampled law, as its base's are even."""
        outline = self.cells(0.25)
        held = outline.p > 1e-40
        width = float(np.max(outline.upper[held]) - np.min(outline.lower[held]))
        return self.cells(max(width / count, 1e-300))

    @abstractmethod
    def reverse(self) -> LossLaw:
        """The law of log dQ/dP under Q."""

    @property
    def slack(self) -> float:
        """Bound on the rounding error of each loss, in nats."""
        return 0.0

    def log_moment(self, z: Complexes) -> Complexes | None:
        """K(z) = log E[e^{zL}; L < ∞] for Re z > 0, on any branch (theory §3); None where it is not known."""
        del z
        return None

    @property
    def knows_moment(self) -> bool:
        """Whether ``log_moment`` has an answer."""
        return self.log_moment(np.array([1.0 + 0j])) is not None

    @property
    def dies(self) -> bool:
        """Whether a density alone makes the moment die on every line, at the scale of its losses."""
        return False

    def moment_error(self, z: Complexes, moment: Complexes) -> Floats:
        """A bound on the error of ``moment`` = K(z) on a line of equal Re z; some units in the last place."""
        del z
        return np.asarray(1e-15 * np.abs(moment))

    def enclosed(self, z: Complexes) -> tuple[Complexes, Floats] | None:
        """K(z) and a bound on the modulus of its error, for z of equal Re z or real; None where K is not known.

        Where the error is ∞ the real part is an upper bound of that of K, and no more is known.
        """
        moment = self.log_moment(z)
        return None if moment is None else (moment, self.moment_error(z, moment))

    def trimmed(self, mass: float) -> LossLaw:
        """The law with at most this mass of its largest losses counted as infinite; itself, where nothing is gained."""
        del mass
        return self

    def tail(self, z: Complexes) -> tuple[Complexes, Floats] | None:
        """Log E[e^{zL}; what ``trimmed`` took away] and its error; None where nothing was."""
        del z
        return None

    @property
    def flat(self) -> Flat | None:
        """The law tilted by e^{−l/2}, where it is two equal atoms and a uniform density."""
        return None

    @property
    def integrated(self) -> bool:
        """Whether each value of its moment is an integral of its own, by quadrature: dear."""
        return False

    @property
    def inexact(self) -> float:
        """Relative error of the finite masses, beyond a few units in the last place."""
        return 0.0

    @property
    def infinite_error(self) -> float:
        """Relative rounding error of the infinite masses, where they were computed."""
        return 0.0

    def decay(self, c: float, y: float) -> float:
        """A number that |M(c+iy')| / M(c) does not exceed for |y'| ≥ y; 1 where nothing is known."""
        del c, y
        return 1.0

    def profile(self, epsilon: Floats) -> Floats | None:
        """δ(ε) in closed form, where there is one, to a few units in the last place; None otherwise."""
        del epsilon
        return None

    def profile_error(self, epsilon: Floats) -> Floats:
        """Relative error that ``profile`` does not exceed; a few units in the last place unless a law says more."""
        return np.full(np.shape(epsilon), 2e-15)

    def deltas(self, epsilon: Ends) -> Ends | None:
        """Bounds on δ at an ε ≥ 0 between two ends, every rounding and the slack included; None without a formula.

        δ falls, so each of its ends is taken at the end of ε that is on its side, moved there by the slack.
        """
        least, most = widened(epsilon, self.slack)
        high = self.profile(least)
        if high is None:
            return None
        found = around(high, self.profile_error(least))
        low = found if most is least else around(np.asarray(self.profile(most)), self.profile_error(most))
        return low[0], found[1]

    def overlaps(self, epsilon: Ends) -> Ends | None:
        """Bounds on 1 − δ likewise, where a law knows that better than by subtraction; None where it does not."""
        del epsilon
        return None


# Numbers that are known to lie between two others, whole arrays of them: every rounding goes outwards.
#
# A profile falls with ε. So where ε is only known to lie in [a, b], δ is at least what it is at least at b, and at
# most what it is at most at a: no slope is needed, and no error is carried by a condition number.

if TYPE_CHECKING:
    Flags = NDArray[np.bool_]

LEAST_DOUBLE = 5e-324
"""The least double above 0."""


def around(value: Floats, error: Floats | float) -> Ends:
    """Value · (1 ∓ error) inside [0, 1], each end one step further out; an exact zero stays one."""
    return _outward(value * (1 - np.minimum(error, 1.0)), value * (1 + error), value > 0)


def times(ends: Ends, least: Floats | float, most: Floats | float) -> Ends:
    """Both ends times a factor between two others; where all of it is exactly zero it stays so."""
    low, high = ends
    return _outward(low * least, high * most, (high > 0) & (np.asarray(most) > 0))


def widened(ends: Ends, slack: float) -> Ends:
    """Both ends moved outwards by the slack, and on where rounding has moved them by less."""
    if not slack:
        return ends
    low, high = ends[0] - slack, ends[1] + slack
    low = np.where(ends[0] - low < slack, np.nextafter(low, -np.inf), low)
    return low, np.where(high - ends[1] < slack, np.nextafter(high, np.inf), high)


def mirrored(epsilon: Floats, reverse: Ends) -> Ends:
    """1 − e^ε + e^ε δ' at ε ≤ 0, with δ' at −ε in the reverse order: both terms are positive."""
    base, factor = -np.expm1(epsilon), np.exp(epsilon)
    low, high = (around(base + factor * end, 8 * ROUND_OFF) for end in reverse)
    return low[0], high[1]


def by_sign(epsilon: Floats, ahead: Callable[[Ends], Ends | None], back: Callable[[Ends], Ends | None]) -> Ends | None:
    """``ahead`` at ε ≥ 0; below, the mirror of ``back``, which is the same of the reverse order."""
    negative = epsilon < 0
    if not np.any(negative):
        return ahead((epsilon, epsilon))
    size = np.abs(epsilon)
    second = back((size, size))
    first = second if np.all(negative) else ahead((size, size))
    if first is None or second is None:
        return None
    below = mirrored(-size, second)
    return np.where(negative, below[0], first[0]), np.where(negative, below[1], first[1])


def middle(ends: Ends | None) -> Floats | None:
    """Halfway between both ends."""
    return None if ends is None else np.asarray(ends[0] / 2 + ends[1] / 2)


def spread(ends: Ends | None, shape: tuple[int, ...]) -> Floats:
    """How far the ends are from halfway between them, relative to that."""
    if ends is None:
        return np.zeros(shape)
    low, high = ends
    return np.asarray((high - low) / np.maximum(high + low, LEAST_DOUBLE) + 4 * ROUND_OFF)


def _outward(low: Floats, high: Floats, positive: Flags) -> Ends:
    """One step further out, inside [0, 1], where there is anything."""
    least, most = np.nextafter(np.maximum(low, 0.0), 0.0), np.minimum(np.nextafter(high, 2.0), 1.0)
    return (least, most) if positive.all() else (least * positive, most * positive)
