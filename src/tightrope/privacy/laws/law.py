"""One direction of a dominating pair, as the law of its privacy loss L = log dP/dQ under P.

A law says what every engine may ask for; each engine takes what it can use. Losses are in nats.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import numpy as np

from tightrope.numerics.arrays import Complexes, Floats
from tightrope.privacy.laws.enclosed import around, widened

if TYPE_CHECKING:
    from tightrope.privacy.laws.flat import Flat
    from tightrope.privacy.laws.loss_cells import Cells

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
