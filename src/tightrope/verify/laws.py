"""Privacy losses on a grid, in whole numbers and intervals: every rounding raises the loss, or lowers it (not ``up``).

A law holds masses at the losses k·step (in units of 2^−bits) and the mass of infinite loss. Its profile is
δ(ε) = Σ m (1 − e^(ε−ℓ))⁺ + infinite: it rises with every mass and every loss, so what is rounded up stays above.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import cached_property, reduce
from itertools import accumulate
from typing import Any, NamedTuple

from flint import arb, fmpz, fmpz_poly

from tightrope.verify.claims import in_time, require_affordable

Atom = tuple[Any, Any, Any]
"""Mass under P, mass under Q (both arb), and the loss log P/Q."""


NUDGE = -40
"""Rounded down, a loss that is short of a grid point by 2^NUDGE nats counts there: its law is asked at a larger ε."""


LARGEST_LAW, MOST_SPENT = 1 << 19, 1 << 22
"""Limits on the grid points of one distribution, and of all on one grid."""


class GridDistribution(NamedTuple):
    """Masses from the grid point ``low`` on, the mass at infinity, and how many losses were added."""

    low: int
    masses: list[Any]
    infinite: Any
    parts: int = 1


class Grid:
    """Losses that are multiples of ``step`` nats, masses that are multiples of 2^−bits."""

    def __init__(self, step: Fraction, bits: int, *, faint: int, up: bool = True) -> None:
        self.step, self.bits, self.faint, self.up = arb(step.numerator) / step.denominator, bits, faint, up
        self.ratio = (-self.step).exp()
        self.nudge = arb(0) if up else arb(2) ** NUDGE
        self.gap, self.one = 1 - self.ratio, fmpz(1) << bits
        self._powers: dict[int, Any] = {}
        self.spent = 0
        self.upwards = self if up else Grid(step, bits, faint=faint)

    def charge_points(self, points: int) -> None:
        """Raise ``TooMuchError`` for a law of too many points, or for too many of them in all."""
        in_time()
        self.spent += points
        require_affordable(points, LARGEST_LAW, "grid points of a law")
        require_affordable(self.spent, MOST_SPENT, "grid points of all laws")

    def exp_at(self, place: int) -> Any:
        """E^(place · step)."""
        if place not in self._powers:
            self._powers[place] = (self.step * place).exp()
        return self._powers[place]

    def rounded_mass(self, value: Any) -> Any:
        """Whole units, rounded away from the truth; never negative."""
        scaled = value * self.one
        whole = scaled.upper().ceil() if self.up else scaled.lower().floor()
        return max(fmpz(0), whole.unique_fmpz())

    def rounded_shift(self, value: Any, bits: int) -> Any:
        """``value`` / 2^bits, rounded the same way."""
        return -(-value >> bits) if self.up else value >> bits

    @cached_property
    def zero_loss(self) -> GridDistribution:
        """No loss at all."""
        return GridDistribution(0, [self.one], fmpz(0), 0)

    def from_atoms(self, atoms: Iterable[Atom], infinite: Any) -> GridDistribution:
        """The law of atoms; up: each is split between its two neighbors on the grid, which keeps its P and Q mass."""
        found: dict[int, Any] = {}
        for p, q, loss in atoms:
            if not self.up:
                low = int(((loss + self.nudge) / self.step).lower().floor().unique_fmpz())
                found[low] = found.get(low, fmpz(0)) + self.rounded_mass(p)
                continue
            low = int((loss / self.step).upper().ceil().unique_fmpz()) - 1
            above = (p - q * self.exp_at(low)) / self.gap
            for at, part in ((low, p - above), (low + 1, above)):
                found[at] = found.get(at, fmpz(0)) + self.rounded_mass(part)
        self.charge_points(max(found, default=0) - min(found, default=0))
        if not found:
            return GridDistribution(0, [fmpz(0)], self.rounded_mass(infinite))
        first, last = min(found), max(found)
        return self.trim_ends(
            GridDistribution(
                first, [found.get(k, fmpz(0)) for k in range(first, last + 1)], self.rounded_mass(infinite)
            )
        )

    def of_curve(self, profile: Callable[[Any], Any], low: int, high: int) -> GridDistribution:
        """The law whose profile joins the given one at the grid's points (linear in e^ε): above it, as it is convex."""
        self.charge_points(high - low)
        values = []
        for k in range(low, high + 1):
            in_time()
            values.append(self.rounded_mass(profile(self.step * k)))
        return self._of_values(values, low, self.one)

    def _of_values(self, values: Sequence[Any], low: int, total: Any) -> GridDistribution:
        """Masses at the kinks of a profile, from its values at grid points; raised where rounding bent it."""
        inverse = 1 / (self.gap * self.one)
        across = self.ratio * inverse
        after = [*values[1:], values[-1]]
        first = (after[0] - values[0]) * across + arb(total - values[0]) / self.one
        rest = [
            (right - here) * across + (left - here) * inverse
            for left, here, right in zip(values, values[1:], after[1:], strict=False)
        ]
        return self.trim_ends(GridDistribution(low, [self.rounded_mass(one) for one in (first, *rest)], values[-1]))

    def trim_ends(self, law: GridDistribution) -> GridDistribution:
        """Faint ends are not carried along: above they join infinity, below they are lifted (or both are left out)."""
        masses = law.masses
        above = sum(1 for total in accumulate(reversed(masses)) if total <= self.faint)
        below = sum(1 for total in accumulate(masses) if total <= self.faint)
        if above + below == 0 or above + below >= len(masses):
            return law
        kept = masses[below : len(masses) - above]
        if not self.up:
            return GridDistribution(law.low + below, kept, law.infinite, law.parts)
        kept[0] += sum(masses[:below], fmpz(0))
        return GridDistribution(
            law.low + below, kept, law.infinite + sum(masses[len(masses) - above :], fmpz(0)), law.parts
        )

    def convolve_pair(self, one: GridDistribution, other: GridDistribution) -> GridDistribution:
        """The losses of both, added."""
        self.charge_points(len(one.masses) + len(other.masses))
        product = (fmpz_poly(one.masses) * fmpz_poly(other.masses)).coeffs()
        overlap = one.infinite * other.infinite
        overlap = overlap >> self.bits if self.up else -(-overlap >> self.bits)
        masses = [self.rounded_shift(mass, self.bits) for mass in product] or [fmpz(0)]
        infinite = one.infinite + other.infinite - overlap
        return self.trim_ends(GridDistribution(one.low + other.low, masses, infinite, one.parts + other.parts))

    def convolve_power(self, law: GridDistribution, count: int) -> GridDistribution:
        """``count`` such losses, added."""
        found, power = self.zero_loss, law
        while count:
            if count & 1:
                found = self.convolve_pair(found, power)
            count >>= 1
            power = self.convolve_pair(power, power) if count else power
        return found

    def pointwise_worst(self, laws: Sequence[GridDistribution]) -> GridDistribution:
        """A law above all of these: its profile is their pointwise maximum on the grid, joined between its points."""
        if len(laws) == 1:
            return laws[0]
        low, high = min(law.low for law in laws), max(law.low + len(law.masses) for law in laws)
        curves = [self.delta_profile(law, low, high) for law in laws]
        total = max(sum(law.masses, law.infinite) for law in laws)
        return self._of_values([max(values) for values in zip(*curves, strict=True)], low, total)

    def delta_profile(self, law: GridDistribution, low: int, high: int) -> list[Any]:
        """δ(k · step) for k from low to high, in units: Σ above m (1 − e^(−distance)) + infinite, from the top down."""
        ratio = self._round_inward(self.ratio * self.one)
        in_time()
        found, above, discounted = [], law.infinite, fmpz(0)
        for k in range(high, low - 1, -1):
            place = k + 1 - law.low
            mass = law.masses[place] if 0 <= place < len(law.masses) else fmpz(0)
            above += mass
            discounted = (discounted + mass) * ratio
            discounted = discounted >> self.bits if self.up else -(-discounted >> self.bits)
            found.append(above - discounted)
        return found[::-1]

    def _round_inward(self, value: Any) -> Any:
        """Round a subtracted value so that the result is on the grid's side."""
        return (value.lower().floor() if self.up else value.upper().ceil()).unique_fmpz()


class Curve:
    """The profile of a law, ready to be asked."""

    def __init__(self, grid: Grid, law: GridDistribution) -> None:
        self.grid, self.low, self.nudged = grid, law.low, grid.nudge * law.parts
        self.total = sum(law.masses, law.infinite)
        self.values = grid.delta_profile(law, law.low, law.low + len(law.masses))

    def delta(self, epsilon: Any) -> Any:
        """δ(ε) on the grid's side: between two points of the grid the profile of the law is linear in e^ε."""
        in_time()
        epsilon = epsilon + self.nudged
        place = epsilon / self.grid.step
        k = int(place.mid().floor().unique_fmpz()) if place.mid() < self.low + len(self.values) else None
        if k is None or k + 1 >= self.low + len(self.values):
            return arb(self.values[-1]) / self.grid.one
        if k < self.low:
            return arb(self.total if self.grid.up else self.values[0]) / self.grid.one
        part = ((epsilon - self.grid.step * k).exp() - 1) / (1 / self.grid.ratio - 1)
        left, right = arb(self.values[k - self.low]), arb(self.values[k + 1 - self.low])
        value = (left + part * (right - left)) / self.grid.one
        return value.upper() if self.grid.up else arb(0).max(value.lower())

    def power_at(self, false_alarms: Any) -> Any:
        """Return the largest power of an attacker at a false-positive rate: the least δ(ε) + e^ε · rate."""
        in_time()
        share = false_alarms * (-self.nudged).exp() * self.grid.one
        lines = (value + share * self.grid.exp_at(k) for k, value in enumerate(self.values, self.low))
        least = min(line.upper() if self.grid.up else line.lower() for line in lines) / self.grid.one
        return min(arb(1), least.upper() if self.grid.up else least.lower())


def compose_all(grid: Grid, laws: Iterable[GridDistribution]) -> GridDistribution:
    """All of them, added."""
    return reduce(grid.convolve_pair, laws, grid.zero_loss)
