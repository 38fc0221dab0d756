"""Lattice masses of sampled and plain Gaussians, tilted: a law that dominates the true one, and one that it dominates.

Above: each outcome is split between the two ends of its cell, which keeps its mass under P and under Q. Below: outcomes
are merged until each merged one has at least the loss of its point. Proof: ``docs/proofs/tilted-grid.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from scipy import special

from tightrope.accounting.distributions.base import LossDistribution
from tightrope.accounting.distributions.gaussian import GaussianLossDistribution
from tightrope.accounting.distributions.gaussian_mixture import GaussianMixture, MixtureComponents
from tightrope.accounting.distributions.loss_cells import mixed_loss
from tightrope.accounting.distributions.subsampled_gaussian import PoissonGaussian
from tightrope.errors import PrecisionError
from tightrope.numerics.arrays import Floats
from tightrope.numerics.rounding import OVERFLOW, ROUND_OFF

LOG_ROOT_TWO_PI = math.log(2 * math.pi) / 2
LARGE_EXPONENT = 30.0  # from this u on, log g is a sum of logarithms
OUTLINE_SPACING = 0.05  # in standard deviations of the noise
MAX_OUTLINE = 1 << 12
LOG_UNITS = 16.0
"""Roundings of a logarithm of a bound on a tail, relative to the sizes of its addends."""
FAR_OUTCOME = 14.0  # standard deviations from a mean beyond which a tail is bounded as a whole


@dataclass(frozen=True, slots=True)
class LineLaw:
    """The loss s·log g(x) of x with the density φ g^{[s = 1]}, g = 1 − q + q e^{μx − μ²/2}: s is 1 for removing."""

    mu: float
    rate: float
    sign: int

    @staticmethod
    def from_distribution(law: object) -> LineLaw | None:
        """Return the law of a plain or Poisson-sampled Gaussian, or of a mixture; None for other distributions."""
        if isinstance(law, PoissonGaussian) and law.cut == math.inf:
            return LineLaw(law.mu, law.rate, 1 if law.remove or law.rate == 1 else -1)
        if isinstance(law, GaussianLossDistribution) and law.rounding == 0:
            return LineLaw(law.mu, 1.0, 1)
        if isinstance(law, GaussianMixture) and law.cut == math.inf:
            parts = law.components
            return MixtureLine(parts.largest, parts.moved_weight, 1 if law.remove else -1, parts)
        return None

    def reverse_distribution(self) -> LossDistribution:
        """Return the loss distribution of the pair in the other order."""
        if self.rate == 1:
            return GaussianLossDistribution(self.mu)
        return PoissonGaussian(self.mu, self.rate, self.sign < 0)

    @property
    def log_least_ratio(self) -> float:
        """The infimum of log g."""
        return math.log1p(-self.rate) if self.rate < 1 else -math.inf

    @property
    def least_loss(self) -> float:
        """The infimum of the losses."""
        return self.log_least_ratio if self.sign > 0 else -math.inf

    @property
    def largest_loss(self) -> float:
        """The supremum of the losses."""
        return math.inf if self.sign > 0 else -self.log_least_ratio

    @property
    def probability_rounding(self) -> float:
        """Rounding error of the logs of the probabilities of the shifts, and of their exponents, in units of 2⁻⁵³."""
        return 0.0

    def log_slope(self, x: Floats) -> Floats:
        """Return the slope of log g at x [n]."""
        return np.asarray(self.mu * special.expit(self.mu * x - self.mu**2 / 2 + special.logit(self.rate)))

    def log_g_rounding(self, x: Floats) -> Floats:
        """Return a bound on the rounding error of log g at x [n], in units of 2⁻⁵³, without that of the sum."""
        sizes = np.abs(self.mu * x) + self.mu**2 + 1 - math.log(self.rate)
        return np.asarray(16 * sizes * self.log_slope(x) / self.mu)  # half of it is for the rounding of μ

    def log_g(self, x: Floats) -> Floats:
        """Return log g, without overflow, and accurate near 0."""
        exponent = np.asarray(self.mu * x - self.mu**2 / 2)
        if self.rate == 1:
            return exponent
        large = np.logaddexp(math.log(self.rate) + exponent, math.log1p(-self.rate))
        return np.where(exponent > LARGE_EXPONENT, large, mixed_loss(exponent, self.rate))

    def outcome_at_loss(self, loss: Floats) -> Floats:
        """Return the x with this loss; NaN or ∓∞ if there is none."""
        signed = np.asarray(self.sign * loss)
        with np.errstate(divide="ignore", invalid="ignore"):
            near = np.log1p(np.expm1(np.minimum(signed, LARGE_EXPONENT)) / self.rate)
            far = signed - math.log(self.rate) + np.log1p((self.rate - 1) * np.exp(-np.maximum(signed, 1.0)))
        return np.asarray((np.where(signed > LARGE_EXPONENT, far, near) + self.mu**2 / 2) / self.mu)

    def log_density(self, x: Floats, log_g: Floats) -> Floats:
        """Return the log of the density under P."""
        density = -(x**2) / 2 - LOG_ROOT_TWO_PI
        return np.asarray(density + log_g if self.sign > 0 else density)

    def log_tail(self, x: float, tilt: float, *, above: bool, end: float = math.inf) -> float:
        """Return the log of a bound on ∫ e^{tilt·L} dP beyond x (up to ``end``): that of φ g^p, p = 1 + tilt or −tilt.

        From x to a far point g^p is bounded between grid points. Beyond that point: g rises with x, so that below
        g^p ≤ g(far)^p (above, if p < 0); above, if p ≥ 0, g(t)^p ≤ g(far)^p e^{pμ(t − far)}.
        """
        power = 1 + tilt if self.sign > 0 else -tilt
        far = (
            max(x, FAR_OUTCOME + self.mu * max(power, 0.0))
            if above
            else min(x, self.mu * min(power, 0.0) - FAR_OUTCOME)
        )
        if above and end <= far:
            return self._log_mass_between(x, end, power)
        edge = power * float(self.log_g(np.array([far]))[0])
        if above and power >= 0:
            drift = power * self.mu
            parts = [edge, -drift * far, drift**2 / 2, float(special.log_ndtr(drift - far))]
        elif above:
            parts = [edge, float(special.log_ndtr(-far))]
        else:
            parts = [max(edge, power * self.log_least_ratio) if power < 0 else edge, float(special.log_ndtr(far))]
        beyond = math.fsum(parts) + LOG_UNITS * ROUND_OFF * (math.fsum(map(abs, parts)) + far**2)
        if far == x:
            return beyond
        return float(np.logaddexp(beyond, self._log_mass_between(min(x, far), max(x, far), power)))

    def _log_mass_between(self, low: float, high: float, power: float) -> float:
        """Return the log of a bound on ∫ φ g^power between two x.

        log g is convex: between two points of a grid it is below its chord, and above its tangent.
        """
        x = np.linspace(low, high, min(math.ceil((high - low) / OUTLINE_SPACING), MAX_OUTLINE) + 1)
        log_g = self.log_g(x)
        slope = np.diff(log_g) / np.diff(x)
        if power < 0:
            slope = self.log_slope(x[:-1])
        drift = power * slope
        log_mass = np.minimum(special.log_ndtr(x[1:] - drift), special.log_ndtr(drift - x[:-1]))
        parts = np.stack([power * log_g[:-1], -drift * x[:-1], drift**2 / 2, log_mass])
        rounding = LOG_UNITS * ROUND_OFF * (np.sum(np.abs(parts), axis=0) + x[:-1] ** 2)
        return float(special.logsumexp(np.sum(parts, axis=0) + rounding))

    def log_tail_masses(self, x: float) -> tuple[float, float]:
        """Return the logs of P and Q above x, for removing."""
        log_q = float(special.log_ndtr(-x))
        log_b = math.log(self.rate) + float(special.log_ndtr(self.mu - x))
        kept = math.log1p(-self.rate) if self.rate < 1 else -math.inf
        return float(np.logaddexp(log_b, kept + log_q)), log_q


@dataclass(frozen=True, slots=True)
class MixtureLine(LineLaw):
    """The loss of a mixture of Gaussians: ``mu`` is its largest shift, ``rate`` the probability of a shift above 0."""

    components: MixtureComponents

    def reverse_distribution(self) -> LossDistribution:
        return GaussianMixture(self.components, self.sign < 0)

    @property
    def log_least_ratio(self) -> float:
        return self.components.log_zero_weight

    @property
    def probability_rounding(self) -> float:
        return 2 * self.components.weight_error + 4 * self.mu**2

    def log_g(self, x: Floats) -> Floats:
        return self.components.log_g(x)

    def log_slope(self, x: Floats) -> Floats:
        total, slope = self.components.log_moved_sum(x)
        return np.asarray(slope * np.exp(total - self.log_g(x)))

    def log_g_rounding(self, x: Floats) -> Floats:
        share = np.exp(self.components.log_moved_sum(x)[0] - self.log_g(x))
        sizes = np.abs(self.mu * x) + self.mu**2 + 1 + self.components.weight_error
        return np.asarray(16 * sizes * np.minimum(share, 1.0) + 4 * self.components.weight_error * self.rate)

    def outcome_at_loss(self, loss: Floats) -> Floats:
        levels = np.atleast_1d(self.sign * loss)
        level = np.expm1(np.clip(levels, -700.0, 700.0)) + self.rate
        logs = np.where(levels > 700.0, levels, np.log(np.where(level > 0, level, 1.0)))
        low, high = self.components.outcome_at(logs, np.zeros_like(logs))
        return np.where(level > 0, low / 2 + high / 2, -np.inf).reshape(np.shape(loss))

    def log_tail_masses(self, x: float) -> tuple[float, float]:
        parts = zip(self.components.shifts, self.components.log_weights, strict=True)
        log_q = float(special.log_ndtr(-x))
        moved = [log_weight + float(special.log_ndtr(shift - x)) for shift, log_weight in parts]
        return float(special.logsumexp([*moved, self.components.log_zero_weight + log_q])), log_q


class Outline(NamedTuple):
    """A law on a coarse grid of x: losses and logs of masses, for choices that need no proof."""

    x: Floats
    loss: Floats
    log_mass: Floats

    @classmethod
    def from_law(cls, law: LineLaw, largest_power: float, end: float) -> Self:
        """Return the outline up to ``end``, for powers of g up to ``largest_power``."""
        high = min(end, 14.0 + law.mu * max(largest_power, 1.0)) if law.sign > 0 else 14.0
        low = -14.0 if law.sign > 0 else -14.0 - law.mu * largest_power
        count = math.ceil((high - low) / OUTLINE_SPACING) + 1
        x = np.linspace(low, high, min(max(count, 256), MAX_OUTLINE))
        log_g = law.log_g(x)
        return cls(x, law.sign * log_g, law.log_density(x, log_g) + math.log(x[1] - x[0]))

    def log_moment(self, c: float) -> float:
        """Return log E e^{cL}, approximately."""
        return float(special.logsumexp(self.log_mass + c * self.loss))

    @property
    def reverse_variance(self) -> float:
        """The variance of the loss under Q, approximately, of the part with a finite probability there."""
        masses = np.exp(self.log_mass - self.loss)
        mean = float(np.dot(masses, self.loss))
        return float(np.dot(masses, (self.loss - mean) ** 2))

    def relevant_range(self, c: float, nats: float) -> tuple[float, float]:
        """Return the x between which the tilted density is within these nats of its peak."""
        exponent = self.log_mass + c * self.loss
        inside = np.flatnonzero(exponent > np.max(exponent) - nats)
        first, last = max(int(inside[0]) - 1, 0), min(int(inside[-1]) + 1, len(self.x) - 1)
        return float(self.x[first]), float(self.x[last])


QuadratureRule = tuple[Floats, Floats]
"""Nodes and weights of a Gauss–Legendre rule on [−1, 1]."""
FEW_NODES: QuadratureRule = np.polynomial.legendre.leggauss(3)
MANY_NODES: QuadratureRule = np.polynomial.legendre.leggauss(8)
NARROW_PANEL = 0.011
"""Width times 1 + distance from the two means, up to which three nodes suffice."""
MAX_PANEL_WIDTH, MAX_PANEL_SLOPE = 0.25, 2.0
"""Largest width, and largest width times 1 + distance from the two means, for which eight nodes suffice."""
QUADRATURE_ERROR = ROUND_OFF
"""Bound on the relative error of a panel's masses under P and under Q (``gauss_legendre_error``)."""
MAX_PANEL_ANGLE = 0.6
"""Panels are at most this wide, in units of 1/μ, so that the slope of log g hardly changes within one."""
MAX_PANELS = 1 << 23


def gauss_legendre_error(size: int, slope: float, half_width: float, ellipse: float) -> float:
    """Return a bound on the relative error for a normal density on a panel, from its analyticity in an ellipse.

    ``slope`` is half the width times the distance of the panel's middle from the mean, ``ellipse`` any number above 1.

    >>> gauss_legendre_error(8, 1.0, 0.125, 26.0) < QUADRATURE_ERROR
    True
    """
    long_axis, short_axis = (ellipse + 1 / ellipse) / 2, (ellipse - 1 / ellipse) / 2
    growth = slope * long_axis + (half_width * short_axis) ** 2 / 2 + half_width**2 / 6
    return 32 / 15 * math.exp(growth) * float(ellipse ** (-2 * size)) / (1 - ellipse**-2)


class Panels(NamedTuple):
    """Intervals [n] of x, each within half a cell: where they start, how wide they are, the lattice points at them."""

    start: Floats
    width: Floats
    cell: Floats
    """Index of the lattice point below."""
    point: Floats
    """Index of the nearest lattice point."""

    def select(self, chosen: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Panels:
        """Return some of the panels."""
        return Panels(*(values[chosen] for values in self))


@dataclass(frozen=True, slots=True)
class TiltedLattice:
    """The points anchor + step·j, and the tilt."""

    step: float
    tilt: float

    def panels(self, law: LineLaw, anchor: float, low: float, high: float) -> Panels:
        """Return panels between two x, with edges at all lattice points and midpoints, and more if panels are wide."""
        losses = law.sign * law.log_g(np.array([low, high]))
        half = self.step / 2
        first, last = math.floor((losses.min() - anchor) / half), math.ceil((losses.max() - anchor) / half)
        reach = max(abs(low), abs(high), abs(low - law.mu), abs(high - law.mu))
        widest = min(MAX_PANEL_WIDTH, MAX_PANEL_ANGLE / law.mu, MAX_PANEL_SLOPE / (1 + reach))
        wide_panels = (high - low) / widest
        if not last - first + wide_panels <= MAX_PANELS:
            raise PrecisionError(f"a lattice of step {self.step:.3g} needs {last - first + wide_panels:.3g} panels")
        plain = np.linspace(low, high, math.ceil(wide_panels) + 1)
        cuts = law.outcome_at_loss(anchor + half * np.arange(first, last + 1))
        edges = np.sort(np.concatenate([plain, cuts[(cuts > low) & (cuts < high)]]))
        width = np.diff(edges)
        start, width = edges[:-1][width > 0], width[width > 0]
        at = (law.sign * law.log_g(start + width / 2) - anchor) / self.step
        return Panels(start, width, np.floor(at), np.rint(at))

    def cells(self, law: LineLaw, anchor: float, bounds: tuple[float, float], shift: float) -> LatticeCells:
        """Return the masses of the outcomes between two x, tilted and scaled by e^{−shift}."""
        panels = self.panels(law, anchor, *bounds)
        first = int(panels.cell.min()) - 1
        size = int(panels.cell.max()) - first + 3
        rise = math.exp(self.tilt * self.step)
        masses, errors = np.zeros((3, size)), np.zeros(2)
        farthest = np.maximum(np.abs(panels.start), np.abs(panels.start - law.mu)) + panels.width
        narrow = panels.width * (1 + farthest) <= NARROW_PANEL
        for chosen, rule in ((narrow, FEW_NODES), (~narrow, MANY_NODES)):
            if not np.any(chosen):
                continue
            some = panels.select(chosen)
            sums, some_errors = self._integrate_panels(law, anchor, some, rule, shift)
            errors = np.maximum(errors, some_errors)
            # The nearest point is the one below or the next: e^{tilt·step} changes the tilt from one to the other.
            sums[2:] *= np.where(some.point > some.cell, rise, 1.0)
            index, nearest = (some.cell - first).astype(np.int64), (some.point - first).astype(np.int64)
            masses[0] += np.bincount(index, sums[0], size) + np.bincount(index + 1, sums[1] * rise, size)
            masses[1] += np.bincount(nearest, sums[2], size)
            masses[2] += np.bincount(nearest, sums[3], size)
        # Each addition to a point may be off by a rounding.
        adding = 8 * ROUND_OFF * float(np.max(np.bincount((panels.cell - first).astype(np.int64))))
        loss_error = float(errors[0]) + 4 * QUADRATURE_ERROR + 8 * ROUND_OFF * (abs(anchor) + self.step)
        width = min(self.step, OVERFLOW)
        loss_error += (adding + 2 * NEGLIGIBLE_EXCESS) * math.expm1(width) * math.exp(width)
        mass_error = float(errors[1]) + QUADRATURE_ERROR + adding
        return LatticeCells(first, masses[0], masses[1], masses[2], loss_error, mass_error)

    def _integrate_panels(
        self, law: LineLaw, anchor: float, panels: Panels, rule: QuadratureRule, shift: float
    ) -> tuple[Floats, Floats]:
        """Return sums [4, n] and the largest errors of losses and (relative) of masses.

        The sums, tilted by e^{tilt·point below}: masses for the point below and for the next one if outcomes are split
        between them, mass, and excess about the nearest point.
        """
        log_width = np.log(panels.width / 2) - shift
        below = self.step * panels.cell
        sums, outside = np.zeros((4, len(panels.start))), 0.0
        for node, weight in zip(*rule, strict=True):
            x = panels.start + panels.width * ((1 + node) / 2)
            log_g = law.log_g(x)
            loss = law.sign * log_g - anchor
            above = np.clip(loss - below, 0.0, self.step)
            outside = max(outside, float(np.max(np.abs(loss - below - above))))
            fraction = np.expm1(-above) / math.expm1(-self.step)
            mass = weight * np.exp(law.log_density(x, log_g) + log_width + self.tilt * below)
            sums[0] += mass * (1 - fraction)
            sums[1] += mass * fraction
            sums[2] += mass
            sums[3] -= mass * np.expm1(self.step * panels.point - loss)
        loss_error = law.log_g_rounding(panels.start) + 16 * np.abs(loss + anchor) + 8 * abs(anchor)
        logs = panels.start**2 + np.abs(log_g) + np.abs(self.tilt * below) + np.abs(log_width) + abs(shift)
        return sums, np.array(
            [
                ROUND_OFF * float(np.max(loss_error)) + outside,
                ROUND_OFF * (4 * float(np.max(logs)) + 256 + law.probability_rounding),
            ]
        )


class LatticeCells(NamedTuple):
    """Masses [n] at the points first + i, tilted by e^{tilt·point}.

    ``split``: each outcome is split between the ends of its cell. ``merged``: each outcome goes to the nearest point;
    ``excess`` is Σ p (1 − e^{−(l − point)}) of those.
    """

    first: int
    split: Floats
    merged: Floats
    excess: Floats
    loss_error: float
    mass_error: float

    def next_outcomes(self, lattice: TiltedLattice) -> tuple[Floats, Floats]:
        """Return mass and excess, about a point, of the outcomes merged at the next one."""
        fall = math.exp(-lattice.tilt * lattice.step)
        mass, excess = fall * np.append(self.merged[1:], 0.0), fall * np.append(self.excess[1:], 0.0)
        return mass, -math.expm1(-lattice.step) * mass + math.exp(-lattice.step) * excess

    def outweighing(self, next_excess: Floats) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Return where the outcomes merged at the next point do not suffice to lift those of this one to it."""
        return (self.excess < 0) & ~(-self.excess <= next_excess * (1 - 1e-9))

    def dominated_masses(self, lattice: TiltedLattice) -> Floats:
        """Return masses of outcomes that are merged so that every excess is at least 0, and lowered to their points.

        Outcomes with a negative excess are merged with a part of those of the next point or, if these do not suffice,
        with those of the point before. Then an excess is reduced by merging with a part of the outcomes of the point
        before; what is left of it is lost.
        """
        rise = math.exp(lattice.tilt * lattice.step)
        next_mass, next_excess = self.next_outcomes(lattice)
        lowered = self.outweighing(next_excess)
        share = np.where(lowered, 0.0, np.maximum(-self.excess, 0.0) / np.maximum(next_excess, LEAST_MASS))
        share = np.minimum(share * (1 + 1e-12), 1.0)
        left = np.where(lowered, 0.0, 1 - np.append(0.0, share[:-1]))
        taken = share + (1 - share) * np.append(lowered[1:], False)
        masses = self.merged * left + taken * next_mass
        excess = self.excess * left + taken * next_excess
        # Beyond rounding, none is negative; if one were, the outcome would be dropped.
        masses = np.where(excess < -NEGLIGIBLE_EXCESS * math.expm1(lattice.step) * masses, 0.0, masses)
        excess = np.where(masses > 0, np.maximum(excess, 0.0), 0.0)
        last_mass = rise * np.append(0.0, masses[:-1])
        last_deficit = math.expm1(lattice.step) * last_mass - math.exp(lattice.step) * rise * np.append(
            0.0, excess[:-1]
        )
        share = np.where(last_deficit > 0, np.minimum(excess / np.maximum(last_deficit, LEAST_MASS), 1.0), 0.0)
        share *= (1 - np.append(share[1:], 0.0)) * (1 - 1e-12)
        return np.asarray(masses * (1 - np.append(share[1:], 0.0)) + share * last_mass)


LEAST_MASS = 1e-300  # divisor in place of 0
ANCHOR_STEPS, BISECTIONS = 4, 34
MAX_MERGED_PANELS = 1 << 15
"""Panels of the outcomes merged at a point around which the lattice is laid; any point would be valid."""
NEGLIGIBLE_EXCESS = 1e-12
"""A negative excess, relative to the mass times e^{step} − 1, that is counted as an error of the loss."""


def _merged_between(law: LineLaw, outline: Outline, low: float, high: float, point: float) -> tuple[float, float]:
    """Return mass and excess about a point of the outcomes with losses between two, up to a common factor."""
    ends = law.outcome_at_loss(np.array([low, high]))
    ends = np.where(np.isnan(ends), -np.inf, ends)  # no outcome has so small, or so large, a loss
    first, last = max(float(np.min(ends)), float(outline.x[0])), min(float(np.max(ends)), float(outline.x[-1]))
    if not first < last:
        return 0.0, 0.0
    panels = math.ceil((last - first) / min(MAX_PANEL_WIDTH, MAX_PANEL_ANGLE / law.mu))
    edges = np.linspace(first, last, min(panels, MAX_MERGED_PANELS) + 1)
    width = np.diff(edges)[:, None]
    x = edges[:-1, None] + width * (1 + MANY_NODES[0]) / 2
    log_g = law.log_g(x)
    masses = np.exp(law.log_density(x, log_g) - np.max(outline.log_mass)) * width * MANY_NODES[1]
    return float(np.sum(masses)), -float(np.sum(masses * np.expm1(point - law.sign * log_g)))


def place_anchor(law: LineLaw, outline: Outline, lattice: TiltedLattice) -> float:
    """Return the point around which the lattice is laid.

    If losses have a least value, the outcomes merged at the lowest point have exactly its loss: no part of others could
    compensate an excess. Else it is the loss of those merged at the heaviest point, about.
    """
    step = lattice.step
    anchor = float(outline.loss[np.argmax(outline.log_mass + lattice.tilt * outline.loss)])
    if law.least_loss == -math.inf:
        for _ in range(ANCHOR_STEPS):
            mass, excess = _merged_between(law, outline, anchor - step / 2, anchor + step / 2, anchor)
            anchor += excess / mass if mass > 0 else 0.0
        return anchor

    def lowest_excess(at: float) -> float:
        _, excess = _merged_between(law, outline, -math.inf, at + step / 2, at)
        _, own = _merged_between(law, outline, at + step / 2, at + 1.5 * step, at + step)
        _, available = _merged_between(law, outline, at + 1.5 * step, at + 2.5 * step, at + step)
        if -own > available * (1 - 1e-9):  # those of the next point join
            _, joined = _merged_between(law, outline, at + step / 2, at + 1.5 * step, at)
            excess += joined * (1 - 1e-6)
        return excess

    low, high = law.least_loss, law.least_loss + step
    while lowest_excess(high) > 0:
        low, high = high, high + step
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if lowest_excess(middle) >= 0 else (low, middle)
    return low
