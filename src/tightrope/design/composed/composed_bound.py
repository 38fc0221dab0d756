"""No noise for several releases costs less: from the tails that counting answers beyond a threshold leaves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import chain, zip_longest

from tightrope.certificates.noise import Argument, NoiseCertificate
from tightrope.design.composed.counted_tails import CountedTails
from tightrope.design.program.noise_certificate import Bound, Proof, certified
from tightrope.design.program.noise_closed_form import least_cost, rounded_down
from tightrope.design.program.noise_expense import expense
from tightrope.mechanisms.tables.integer_weights import ONE
from tightrope.mechanisms.tables.table import NoiseTable

MOST_RELEASES_COUNTED = 200
"""More releases are counted in groups, or the rest is left out."""
COUNTED = (
    "Of `count` answers, each the sum of `together` releases and changed by a person by width = sensitivity times "
    "together, the number that is at least x + width is binomial with rates P(X >= x + width) and P(X >= x); every "
    "point holds between these two laws, both ways. So symmetric X has P(X >= x + j width) >= centre[j] for 1 <= x <= "
    "(width + 1)/2 and >= half[j] for larger x <= width, and one release costs at least phi(0) + 2 sum_x (phi(x) - "
    "phi(x-1)) P(X >= x), with the squared error divided by together. Proof: docs/proofs/composed-noise.md."
)


@dataclass(frozen=True)
class ComposedBound:
    """A lower bound on the cost of the noise of each of several releases that keep a promise together."""

    one: Bound
    releases: int

    @property
    def together(self) -> int:
        """Releases that are added up before they are counted: variances add up, other costs do not."""
        return -(-self.releases // MOST_RELEASES_COUNTED) if self.one.cost.power == 2 else 1

    @property
    def count(self) -> int:
        """How many of these sums are counted."""
        return min(self.releases // self.together, MOST_RELEASES_COUNTED)

    @cached_property
    def tails(self) -> tuple[list[float], list[float]]:
        """Lower bounds on P(X ≥ x + jΔ), from the centre and from ½."""
        counted = CountedTails(self.one.promise.uncapped.points, self.count)
        return counted.from_centre(), [] if self._width == 1 else counted.from_half()

    @property
    def _width(self) -> int:
        return self.one.sensitivity * self.together

    def _each(self) -> Iterator[float]:
        """Lower bounds on P(X ≥ 1), P(X ≥ 2), …"""
        inner = (self._width + 1) // 2
        periods = zip_longest(*self.tails, fillvalue=0.0)
        return chain.from_iterable([near] * inner + [far] * (self._width - inner) for near, far in periods)

    @cached_property
    def value(self) -> float:
        """The bound, rounded down."""
        found = least_cost([int(Fraction(tail) * ONE) for tail in self._each()], self.one.cost)
        return rounded_down(Fraction(found) / self.together)

    @property
    def argument(self) -> Argument:
        """Why it holds."""
        centre, half = self.tails
        numbers = {
            "points": [list(point) for point in self.one.promise.uncapped.points],
            "count": self.count,
            "together": self.together,
            "centre": centre,
            "half": half,
        }
        return Argument("theorem", COUNTED, numbers)


@dataclass(frozen=True)
class ComposedProof(Proof):
    """Several releases under one budget."""

    bound: ComposedBound

    def certificate(self, table: NoiseTable) -> NoiseCertificate:
        one = self.bound.one
        upper = expense(table, one.cost)
        proven = (self.bound.value, self.bound.argument)
        return certified(table, one, proven, upper, "unimodal", releases=self.bound.releases)
