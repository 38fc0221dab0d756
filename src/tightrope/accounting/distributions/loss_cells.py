"""A loss distribution cut into cells: intervals of loss, each with P-masses at its two ends that keep both its masses.

Distributions without a closed form are handled as cells. Two atoms at a < b with P-masses x and y stand for outcomes
in [a, b] with P-mass x + y and Q-mass x e^{−a} + y e^{−b}: the end atoms dominate (``docs/proofs/chords.md``).
An atom is a cell of width zero. Masses at the ends, unlike Q-masses, never leave double precision.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from tightrope.numerics.arrays import Floats

HALF = 0.5
"""At arguments below minus this, log1p of a rounded number is off by more than a rounding."""
MAX_LOSS_CELLS = 1 << 19
"""Largest number of cells: wider cells keep bounds valid but make them less tight."""


@dataclass(frozen=True, slots=True, eq=False)
class LossCells:
    """Arrays of shape [n]: the ends of the intervals of loss and the P-masses at them; also the two infinite masses."""

    lower: Floats
    upper: Floats
    low: Floats
    high: Floats
    infinite_mass: float
    reverse_infinity_mass: float
    slack: float = 0.0

    @classmethod
    def from_atoms(
        cls, losses: Floats, masses: Floats, infinite_mass: float, reverse_infinity_mass: float, slack: float = 0.0
    ) -> LossCells:
        """Build cells of width zero."""
        return cls(losses, losses, masses, np.zeros_like(masses), infinite_mass, reverse_infinity_mass, slack)

    @property
    def p_masses(self) -> Floats:
        """P-masses of the cells."""
        return self.low + self.high

    @property
    def q_masses(self) -> Floats:
        """Q-masses of the cells; at most 1, and 0 where they are below double precision."""
        return _tilt_masses(self.low, self.lower) + _tilt_masses(self.high, self.upper)

    def dominating_atoms(self) -> tuple[Floats, Floats]:
        """Return losses and P-masses [2n] of the dominating atoms."""
        return np.concatenate([self.lower, self.upper]), np.concatenate([self.low, self.high])

    def join_bounds(self, other: LossCells) -> LossCells:
        """Return the cells of both, with the infinite masses of the first."""
        return replace(
            self,
            lower=np.concatenate([self.lower, other.lower]),
            upper=np.concatenate([self.upper, other.upper]),
            low=np.concatenate([self.low, other.low]),
            high=np.concatenate([self.high, other.high]),
        )

    def scale_masses(self, factor: float) -> LossCells:
        """Multiply all masses by a factor."""
        masses = (
            factor * self.low,
            factor * self.high,
            factor * self.infinite_mass,
            factor * self.reverse_infinity_mass,
        )
        return LossCells(self.lower, self.upper, *masses, self.slack)

    def reverse_cells(self) -> LossCells:
        """Return the cells of log dQ/dP under Q."""
        low, high = _tilt_masses(self.low, self.lower), _tilt_masses(self.high, self.upper)
        return LossCells(
            -self.upper, -self.lower, high, low, self.reverse_infinity_mass, self.infinite_mass, self.slack
        )

    def select_cells(self, chosen: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> LossCells:
        """Return only the chosen cells, with the same infinite masses."""
        return replace(
            self, lower=self.lower[chosen], upper=self.upper[chosen], low=self.low[chosen], high=self.high[chosen]
        )

    def poisson_remove(self, rate: float) -> LossCells:
        """Map cells of (B, A) to ((1−q)A + qB, A): l → log(1−q+qe^l), and A's mass is mixed in."""
        low = rate * self.low + (1 - rate) * _tilt_masses(self.low, self.lower)
        high = rate * self.high + (1 - rate) * _tilt_masses(self.high, self.upper)
        kept = self.reverse_infinity_mass if rate == 1 else 0.0
        mapped = LossCells(
            _sampled_losses(self.lower, rate),
            _sampled_losses(self.upper, rate),
            low,
            high,
            rate * self.infinite_mass,
            kept,
            self.slack,
        )
        return _append_atom(
            mapped, (1 - rate) * self.reverse_infinity_mass, math.log1p(-rate) if rate < 1 else -math.inf
        )

    def poisson_add(self, rate: float) -> LossCells:
        """Map cells of (A, B) to (A, (1−q)A + qB): l → −log(1−q+qe^{−l})."""
        kept = self.infinite_mass if rate == 1 else 0.0
        mapped = LossCells(
            -_sampled_losses(-self.lower, rate),
            -_sampled_losses(-self.upper, rate),
            self.low,
            self.high,
            kept,
            rate * self.reverse_infinity_mass,
            self.slack,
        )
        return _append_atom(mapped, self.infinite_mass, -math.log1p(-rate) if rate < 1 else math.inf)


def loss_step_multiples(low: float, high: float, step: float) -> Floats:
    """Return the multiples of the step from ``low`` to ``high`` and 0; of several steps if there would be too many."""
    if not math.isfinite(step):
        return np.zeros(1)
    step *= max(1, math.ceil((high - low) / step / MAX_LOSS_CELLS))
    return np.asarray(step * np.arange(math.ceil(min(low, 0.0) / step), math.floor(max(high, 0.0) / step) + 1))


def _tilt_masses(masses: Floats, losses: Floats) -> Floats:
    """Return masses times e^{−loss}, at most 1: masses under Q."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.exp(np.minimum(np.log(masses) - losses, 0.0)))


def _sampled_losses(loss: Floats, rate: float) -> Floats:
    """Return log(1 − q + q e^l), exact near l = 0 and without overflow."""
    keep = math.log1p(-rate) if rate < 1 else -math.inf
    return np.where(loss > 30, np.logaddexp(math.log(rate) + loss, keep), mixed_loss(loss, rate))


def mixed_loss(loss: Floats, rate: float) -> Floats:
    """Return log(1 − q + q e^l) for l up to 700.

    By log1p near 0, and by a sum of positive terms where that would cancel.

    >>> mixed_loss(np.array([-50.0, 0.0, 1e-20]), 1 - 2.0**-30).round(9).tolist()
    [-20.794415417, 0.0, 0.0]
    """
    clipped = np.minimum(loss, 700.0)
    growth = rate * np.expm1(clipped)
    if rate <= HALF:
        return np.asarray(np.log1p(growth))
    small = growth > -HALF
    plain = np.log(np.where(small, 1.0, (1 - rate) + rate * np.exp(clipped)))
    return np.where(small, np.log1p(np.where(small, growth, 0.0)), plain)


def _append_atom(cells: LossCells, mass: float, loss: float) -> LossCells:
    """Return the cells with the atom of outcomes that only one of A and B gives, if it has mass and a finite loss."""
    if not (mass > 0 and math.isfinite(loss)):
        return cells
    return cells.join_bounds(LossCells.from_atoms(np.array([loss]), np.array([mass]), 0.0, 0.0))
