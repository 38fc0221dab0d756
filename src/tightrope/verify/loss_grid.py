"""Privacy losses on a grid, with integers and intervals: each rounding raises the loss (``up``) or lowers it.

A distribution has masses at the losses k·step, in units of 2^−bits, and a mass of infinite loss. Its profile is
δ(ε) = Σ m (1 − e^(ε−ℓ))⁺ + infinite: increasing in every mass and loss: rounding them up gives an upper bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import cached_property, reduce
from itertools import accumulate
from typing import Any, NamedTuple

from flint import arb, fmpz, fmpz_poly

from tightrope.verify.claims import require_affordable, require_time_left

Atom = tuple[Any, Any, Any]
"""Mass under P, mass under Q, and the loss log P/Q, all of type arb."""
NUDGE_EXPONENT = -40
"""If rounding down, a loss at most 2^NUDGE_EXPONENT nats below a grid point is moved up to it; ``Curve`` corrects ε."""
MAX_GRID_POINTS, MAX_TOTAL_POINTS = 1 << 19, 1 << 22
"""Limits on the grid points of one distribution, and on the sum over all distributions of a grid."""


class GridDistribution(NamedTuple):
    """Masses at the grid points from ``low`` on, the mass at infinity, and the number of composed losses."""

    low: int
    masses: list[Any]
    infinite: Any
    parts: int = 1


class Grid:
    """A grid: losses are multiples of ``step`` nats, masses of 2^−bits; ends of at most ``faint`` units are cut off."""

    def __init__(self, step: Fraction, bits: int, *, faint: int, up: bool = True) -> None:
        self.step, self.bits, self.faint, self.up = arb(step.numerator) / step.denominator, bits, faint, up
        self.ratio = (-self.step).exp()
        self.nudge = arb(0) if up else arb(2) ** NUDGE_EXPONENT
        self.gap, self.one = 1 - self.ratio, fmpz(1) << bits
        self._powers: dict[int, Any] = {}
        self.spent = 0
        self.upwards = self if up else Grid(step, bits, faint=faint)

    def charge_points(self, points: int) -> None:
        """Raise ``WorkLimitError`` for a distribution of too many points, or for too many on this grid in all."""
        require_time_left()
        self.spent += points
        require_affordable(points, MAX_GRID_POINTS, "grid points of a distribution")
        require_affordable(self.spent, MAX_TOTAL_POINTS, "grid points of all distributions")

    def exp_at(self, index: int) -> Any:
        """Return e^(index · step)."""
        if index not in self._powers:
            self._powers[index] = (self.step * index).exp()
        return self._powers[index]

    def rounded_mass(self, value: Any) -> Any:
        """Return a mass in units, rounded up or down as the grid does; never negative."""
        scaled = value * self.one
        rounded = scaled.upper().ceil() if self.up else scaled.lower().floor()
        return max(fmpz(0), rounded.unique_fmpz())

    def rounded_shift(self, value: Any, bits: int) -> Any:
        """Return ``value`` / 2^bits, rounded up or down as the grid does."""
        return -(-value >> bits) if self.up else value >> bits

    @cached_property
    def zero_loss(self) -> GridDistribution:
        """The distribution of the loss 0."""
        return GridDistribution(0, [self.one], fmpz(0), 0)

    def from_atoms(self, atoms: Iterable[Atom], infinite: Any) -> GridDistribution:
        """Return the distribution of atoms; up: each is split between its neighbors, keeping its P and Q mass."""
        masses: dict[int, Any] = {}
        for p, q, loss in atoms:
            if not self.up:
                low = int(((loss + self.nudge) / self.step).lower().floor().unique_fmpz())
                masses[low] = masses.get(low, fmpz(0)) + self.rounded_mass(p)
                continue
            low = int((loss / self.step).upper().ceil().unique_fmpz()) - 1
            above = (p - q * self.exp_at(low)) / self.gap
            for index, part in ((low, p - above), (low + 1, above)):
                masses[index] = masses.get(index, fmpz(0)) + self.rounded_mass(part)
        self.charge_points(max(masses, default=0) - min(masses, default=0))
        if not masses:
            return GridDistribution(0, [fmpz(0)], self.rounded_mass(infinite))
        first, last = min(masses), max(masses)
        return self.trim_ends(
            GridDistribution(
                first, [masses.get(k, fmpz(0)) for k in range(first, last + 1)], self.rounded_mass(infinite)
            )
        )

    def from_profile(self, profile: Callable[[Any], Any], low: int, high: int) -> GridDistribution:
        """Return the distribution whose profile interpolates the given one, linearly in e^ε: above it, by convexity."""
        self.charge_points(high - low)
        values = []
        for k in range(low, high + 1):
            require_time_left()
            values.append(self.rounded_mass(profile(self.step * k)))
        return self._from_profile_values(values, low, self.one)

    def _from_profile_values(self, values: Sequence[Any], low: int, total: Any) -> GridDistribution:
        """Return the distribution with this profile at the grid points; negative masses from rounding become 0."""
        left_factor = 1 / (self.gap * self.one)
        right_factor = self.ratio * left_factor
        right_values = [*values[1:], values[-1]]
        first = (right_values[0] - values[0]) * right_factor + arb(total - values[0]) / self.one
        inner = [
            (right - middle) * right_factor + (left - middle) * left_factor
            for left, middle, right in zip(values, values[1:], right_values[1:], strict=False)
        ]
        return self.trim_ends(GridDistribution(low, [self.rounded_mass(mass) for mass in (first, *inner)], values[-1]))

    def trim_ends(self, distribution: GridDistribution) -> GridDistribution:
        """Remove negligible ends. Up: the upper end is moved to infinity, the lower one up; down: both are dropped."""
        masses = distribution.masses
        above = sum(1 for total in accumulate(reversed(masses)) if total <= self.faint)
        below = sum(1 for total in accumulate(masses) if total <= self.faint)
        if above + below == 0 or above + below >= len(masses):
            return distribution
        inner = masses[below : len(masses) - above]
        if not self.up:
            return GridDistribution(distribution.low + below, inner, distribution.infinite, distribution.parts)
        inner[0] += sum(masses[:below], fmpz(0))
        return GridDistribution(
            distribution.low + below,
            inner,
            distribution.infinite + sum(masses[len(masses) - above :], fmpz(0)),
            distribution.parts,
        )

    def convolve_pair(self, first: GridDistribution, second: GridDistribution) -> GridDistribution:
        """Return the distribution of the sum of two independent losses."""
        self.charge_points(len(first.masses) + len(second.masses))
        product = (fmpz_poly(first.masses) * fmpz_poly(second.masses)).coeffs()
        overlap = first.infinite * second.infinite
        overlap = overlap >> self.bits if self.up else -(-overlap >> self.bits)
        masses = [self.rounded_shift(mass, self.bits) for mass in product] or [fmpz(0)]
        infinite = first.infinite + second.infinite - overlap
        return self.trim_ends(GridDistribution(first.low + second.low, masses, infinite, first.parts + second.parts))

    def convolve_power(self, distribution: GridDistribution, count: int) -> GridDistribution:
        """Return the distribution of the sum of ``count`` independent losses."""
        total, power = self.zero_loss, distribution
        while count:
            if count & 1:
                total = self.convolve_pair(total, power)
            count >>= 1
            power = self.convolve_pair(power, power) if count else power
        return total

    def pointwise_worst(self, distributions: Sequence[GridDistribution]) -> GridDistribution:
        """Return a distribution whose profile is the pointwise maximum of these at the grid points, interpolated."""
        if len(distributions) == 1:
            return distributions[0]
        low = min(distribution.low for distribution in distributions)
        high = max(distribution.low + len(distribution.masses) for distribution in distributions)
        curves = [self.delta_profile(distribution, low, high) for distribution in distributions]
        total = max(sum(distribution.masses, distribution.infinite) for distribution in distributions)
        return self._from_profile_values([max(values) for values in zip(*curves, strict=True)], low, total)

    def delta_profile(self, distribution: GridDistribution, low: int, high: int) -> list[Any]:
        """Return δ(k · step) for k from low to high, in units: Σ m (1 − e^(−distance)) + infinite."""
        ratio = self._round_inward(self.ratio * self.one)
        require_time_left()
        values, above, discounted = [], distribution.infinite, fmpz(0)
        for k in range(high, low - 1, -1):
            index = k + 1 - distribution.low
            mass = distribution.masses[index] if 0 <= index < len(distribution.masses) else fmpz(0)
            above += mass
            discounted = (discounted + mass) * ratio
            discounted = discounted >> self.bits if self.up else -(-discounted >> self.bits)
            values.append(above - discounted)
        return values[::-1]

    def _round_inward(self, value: Any) -> Any:
        """Round a factor of a subtracted value: down if the grid rounds up."""
        return (value.lower().floor() if self.up else value.upper().ceil()).unique_fmpz()


class Curve:
    """The profile of a distribution, computed at all grid points."""

    def __init__(self, grid: Grid, distribution: GridDistribution) -> None:
        self.grid, self.low, self.nudged = grid, distribution.low, grid.nudge * distribution.parts
        self.total = sum(distribution.masses, distribution.infinite)
        self.values = grid.delta_profile(distribution, distribution.low, distribution.low + len(distribution.masses))

    def delta(self, epsilon: Any) -> Any:
        """Return δ(ε), rounded as the grid rounds; between two grid points it is linear in e^ε."""
        require_time_left()
        epsilon = epsilon + self.nudged
        position = epsilon / self.grid.step
        k = int(position.mid().floor().unique_fmpz()) if position.mid() < self.low + len(self.values) else None
        if k is None or k + 1 >= self.low + len(self.values):
            return arb(self.values[-1]) / self.grid.one
        if k < self.low:
            return arb(self.total if self.grid.up else self.values[0]) / self.grid.one
        weight = ((epsilon - self.grid.step * k).exp() - 1) / (1 / self.grid.ratio - 1)
        left, right = arb(self.values[k - self.low]), arb(self.values[k + 1 - self.low])
        value = (left + weight * (right - left)) / self.grid.one
        return value.upper() if self.grid.up else arb(0).max(value.lower())

    def power_at(self, false_alarms: Any) -> Any:
        """Return the largest power of an attacker at a false-positive rate: the least δ(ε) + e^ε · rate."""
        require_time_left()
        scaled_rate = false_alarms * (-self.nudged).exp() * self.grid.one
        lines = (value + scaled_rate * self.grid.exp_at(k) for k, value in enumerate(self.values, self.low))
        least = min(line.upper() if self.grid.up else line.lower() for line in lines) / self.grid.one
        return min(arb(1), least.upper() if self.grid.up else least.lower())


def compose_all(grid: Grid, distributions: Iterable[GridDistribution]) -> GridDistribution:
    """Return the distribution of the sum of independent losses."""
    return reduce(grid.convolve_pair, distributions, grid.zero_loss)
