"""A privacy-loss distribution with finitely many atoms: for integer mechanisms and for lists of points."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from tightrope.accounting.distributions.base import (
    LEAST_DOUBLE,
    BoundArrays,
    GaussianForm,
    LossDistribution,
    relative_bounds,
    widen_bounds,
)
from tightrope.accounting.distributions.composition import Composition, probability_of_any
from tightrope.accounting.distributions.loss_cells import LossCells
from tightrope.errors import InputError
from tightrope.numerics.arrays import Complexes, Floats
from tightrope.numerics.complex_functions import log1p
from tightrope.numerics.rounding import OVERFLOW, ROUND_OFF, SUBNORMAL

MAX_ATOM_TABLE_CELLS = 1 << 21
"""Number of cells of an (atoms × nodes) table in memory at once: 32 MiB of complex numbers.

Nodes are the points z at which the log moment log E e^{zL} is computed."""
TOTAL_MASS_TOLERANCE = 1e-12
"""A sum of masses that differs from one by at most this counts as one: the difference is rounding."""
SMALLEST_SUM = 1e-300
"""Replaces a sum of 0, so that its logarithm stays finite."""
MAX_NODE_TABLE_CELLS = 1 << 20
"""Number of cells of a (nodes × losses) table in memory at once: 16 MiB of complex numbers."""
MIN_NODES_FOR_ROWS = 16
"""From this number on, equidistant nodes x + i(y + jh), j = 0, 1, …, are arranged in rows, each with its own y: then a
matrix product computes all sums, since e^{i(y + jh)l} = e^{iyl} e^{ijhl}."""
MAX_ROW_LENGTH = 64
"""Maximal number of nodes in such a row."""
MAX_MEAN_FOR_EXCESS = 0.5
"""Above this value of |z| times the mean absolute loss, summing e^{zl} − 1 has no advantage."""


@dataclass(frozen=True, slots=True, eq=False)
class Atoms(LossDistribution):
    """Finite losses (ascending, distinct) with their masses under P, and the masses of infinite losses.

    ``infinite_mass``: under P where Q = 0 (loss ∞). ``reverse_infinity_mass``: under Q where P = 0 (loss −∞).
    Masses under Q are ``masses * exp(-losses)``. ``rounding_error_bound``: the rounding error of each loss (nats); a
    bound on δ at ε is evaluated at ε ∓ ``rounding_error_bound``.
    """

    losses: Floats
    masses: Floats
    infinite_mass: float = 0.0
    reverse_infinity_mass: float = 0.0
    rounding_error_bound: float = 0.0
    relative_mass_error: float = 0.0
    """Relative rounding error of infinite masses. That of finite masses is larger by some units in the last place."""
    rounding_error_bounds: Floats | None = None
    """A bound on the rounding error of each loss, where known: more precise than ``rounding_error_bound``, which holds
    for all of them."""
    formula: LossDistribution | None = None
    """The same distribution, if it gives δ at ε ≥ 0 more accurately than these rounded losses."""
    one_order: bool = False
    """True if it dominates only one order of a pair: its masses under Q may add up to less than one, so its reverse is
    not a bound."""
    gaussian_form: GaussianForm | None = None

    @classmethod
    def merge_losses(
        cls,
        losses: Floats,
        masses: Floats,
        *,
        infinite_mass: float = 0.0,
        reverse_infinity_mass: float = 0.0,
        rounding_error_bound: float = 0.0,
    ) -> Self:
        """Return atoms from unsorted losses; masses of equal losses are added up, losses without mass are dropped."""
        has_mass = masses > 0
        distinct_losses, positions = np.unique(losses[has_mass], return_inverse=True)
        sums = np.bincount(positions, weights=masses[has_mass], minlength=len(distinct_losses)).astype(np.float64)
        return cls(distinct_losses, sums, infinite_mass, reverse_infinity_mass, rounding_error_bound)

    @classmethod
    def from_pair(cls, p: Floats, q: Floats, *, rounding_error_bound: float = 0.0, mass_error: float = 0.0) -> Self:
        """Return the atoms of a pair of distributions ``p``, ``q`` of shape [n] (same outcomes, in the same order).

        ``mass_error``: relative error of the given masses.
        """
        is_common = (p > 0) & (q > 0)
        with np.errstate(over="ignore", divide="ignore"):
            ratio = p[is_common] / q[is_common]
        is_plain = (ratio > 1e-300) & (ratio < 1e300)
        losses = np.where(is_plain, np.log(np.where(is_plain, ratio, 1.0)), np.log(p[is_common]) - np.log(q[is_common]))
        infinite, opposite = math.fsum(p[(q == 0)]), math.fsum(q[(p == 0)])
        has_rounded_sum = max(np.count_nonzero(p[q == 0]), np.count_nonzero(q[p == 0])) > 1
        rounding_error_bound += 4e-16 * (1 + float(np.max(np.abs(losses), initial=0.0)))
        atoms = cls.merge_losses(
            losses,
            p[is_common],
            infinite_mass=infinite,
            reverse_infinity_mass=opposite,
            rounding_error_bound=rounding_error_bound,
        )
        return replace(atoms, relative_mass_error=mass_error + (ROUND_OFF if has_rounded_sum else 0.0))

    def __post_init__(self) -> None:
        if self.losses.shape != self.masses.shape or self.losses.ndim != 1:
            raise InputError("masses", self.masses.shape, f"one mass per loss, shape {self.losses.shape}")

    @property
    def infinity_mass_error(self) -> float:
        return self.relative_mass_error

    @property
    def largest_loss(self) -> float:
        return float(self.losses[-1]) if len(self.losses) else -math.inf

    def log_moment(self, z: Complexes) -> Complexes:
        """Return log Σ p_i e^{z l_i}, with the largest exponent pulled out."""
        flat = np.asarray(z, dtype=np.complex128).ravel()
        rows = max(1, MAX_ATOM_TABLE_CELLS // max(1, len(self.losses)))
        parts = [self._log_moment(flat[i : i + rows]) for i in range(0, len(flat), rows)]
        return np.concatenate(parts).reshape(np.shape(z))

    def _log_moment(self, z: Complexes) -> Complexes:
        peak = np.max(z.real[:, None] * self.losses, axis=1)
        total = np.exp(z[:, None] * self.losses - peak[:, None]) @ self.masses
        return np.asarray(np.log(np.where(total == 0, SMALLEST_SUM, total)) + peak, dtype=np.complex128)

    def log_moment_error(self, z: Complexes, moment: Complexes) -> Floats:
        """Return a bound on the relative error of the sum: from rounding, the largest exponent and the masses."""
        # At Re z, where no terms cancel; ``z`` is real, or of equal Re z.
        peak = self.log_moment(z.real[:1].astype(np.complex128)).real if np.any(z.imag) else moment.real
        size = float(np.max(np.abs(self.losses), initial=0.0))
        return np.asarray(
            (self.relative_mass_error + 1e-15 * (1 + np.abs(z) * size)) * np.exp(np.minimum(peak - moment.real, 700.0))
        )

    def loss_cells(self, step: float) -> LossCells:
        """Return cells of width zero: the atoms themselves."""
        del step
        return LossCells.from_atoms(
            self.losses, self.masses, self.infinite_mass, self.reverse_infinity_mass, self.rounding_error_bound
        )

    @property
    def reverse_masses(self) -> Floats:
        """Masses under Q: p e^{−loss}, at most one; in two factors, as e^{−loss} alone may leave double precision."""
        half = np.exp(np.minimum(-self.losses / 2, 700.0))
        return np.asarray(np.minimum(self.masses * half * half, 1.0))

    @property
    def missing_reverse_mass(self) -> float:
        """The mass under Q of outcomes whose mass under P underflowed: their losses are unknown."""
        missing = 1 - self.reverse_infinity_mass - math.fsum(self.reverse_masses)
        return (
            missing
            if missing
            > TOTAL_MASS_TOLERANCE + self.relative_mass_error + math.expm1(min(self.rounding_error_bound, 1.0))
            else 0.0
        )

    @property
    def has_exact_reverse(self) -> bool:
        """Return whether the masses determine the reverse: both orders are covered, no mass is subnormal."""
        return (
            not self.one_order
            and float(np.min(self.masses, initial=1.0)) >= SUBNORMAL
            and not self.missing_reverse_mass
        )

    def raise_losses(self) -> Atoms:
        """Return atoms with losses raised by ``rounding_error_bound``: they dominate without a rounding error."""
        return Atoms(
            self.losses + self.rounding_error_bound, self.masses, self.infinite_mass, self.reverse_infinity_mass
        )

    def reverse_distribution(self) -> Atoms:
        """Return the atoms of the reverse order of the pair.

        The error of a loss is also a relative error of its mass under Q. Missing mass counts as infinite loss, which
        dominates.
        """
        masses = self.reverse_masses
        mass_error = self.relative_mass_error + math.expm1(min(self.rounding_error_bound, 1.0)) + 4e-16
        formula = None if self.formula is None else self.formula.reverse_distribution()
        rounding_error_bounds = None if self.rounding_error_bounds is None else self.rounding_error_bounds[::-1]
        infinite = (min(1.0, self.reverse_infinity_mass + self.missing_reverse_mass), self.infinite_mass)
        return Atoms(
            -self.losses[::-1],
            masses[::-1],
            *infinite,
            self.rounding_error_bound,
            mass_error,
            rounding_error_bounds,
            formula,
            gaussian_form=self.gaussian_form,  # x -> shift - x exchanges the two distributions
        )

    def profile(self, epsilon: Floats) -> Floats:
        """Return δ(ε) = δ_∞ + Σ_{l>ε} p (1 − e^{ε−l}): only positive terms."""
        flat = np.atleast_1d(np.asarray(epsilon, dtype=np.float64)).ravel()
        return np.array([self._delta_and_count(float(e))[0] for e in flat]).reshape(np.shape(epsilon))

    def profile_rounding_error(self, epsilon: Floats) -> Floats:
        """Return a bound on the relative rounding error of the terms and of their sum (pairwise summation)."""
        return np.full(np.shape(epsilon), ROUND_OFF * (20 + min(len(self.losses), 40)) + self.relative_mass_error)

    def compute_deltas(self, epsilon: BoundArrays) -> BoundArrays | None:
        """Return bounds on δ for bounds on ε, of any sign.

        All terms are positive, and underflow reduces each by half the least double.
        """
        if self.formula is not None and bool(np.all(epsilon[0] >= 0)):
            return self.formula.compute_deltas(epsilon)
        smallest, largest = widen_bounds(epsilon, self.rounding_error_bound)
        low, low_underflow = self._delta_sums(largest)
        high, high_underflow = (low, low_underflow) if smallest is largest else self._delta_sums(smallest)
        error = float(self.profile_rounding_error(np.zeros(())))
        lower = np.maximum(relative_bounds(low, error)[0] - low_underflow, 0.0)
        return lower, np.minimum(relative_bounds(high, error)[1] + high_underflow, 1.0)

    def _delta_sums(self, epsilon: Floats) -> BoundArrays:
        """Return δ at each ε, shape [n], and a bound on its reduction by underflow."""
        deltas_and_counts = [self._delta_and_count(e) for e in epsilon.tolist()]
        deltas, counts = (np.array(column) for column in zip(*deltas_and_counts, strict=True))
        return deltas, counts * LEAST_DOUBLE

    def _delta_and_count(self, epsilon: float) -> tuple[float, int]:
        """Return δ, and the number of finite losses above ε."""
        first = int(np.searchsorted(self.losses, epsilon, side="right"))
        gains = -np.expm1(epsilon - self.losses[first:])
        return self.infinite_mass + float(np.sum(self.masses[first:] * gains)), len(gains)


def log_sum(z: Complexes, loss: Floats, log_weight: Floats) -> Complexes:
    """Return log Σ w e^{zl}, Σ w = 1, with full relative accuracy near 0.

    If the sum is near one, it is computed as 1 + Σ w (e^{zl} − 1), otherwise divided by its largest term.
    """
    weight = np.exp(log_weight)
    overflows = float(np.max(np.abs(z.real)) * np.max(np.abs(loss))) >= OVERFLOW
    if len(z) < MIN_NODES_FOR_ROWS or not np.all(z.real == z.real[0]):
        equidistant = False
    else:
        steps = np.diff(z.imag)
        equidistant = bool(steps[0] != 0 and np.all(np.abs(steps - steps[0]) <= 1e-12 * np.abs(z.imag[-1])))
    if equidistant and (overflows or float(np.min(np.abs(z))) * float(weight @ np.abs(loss)) > MAX_MEAN_FOR_EXCESS):
        # The sum at equidistant nodes of equal Re z, divided by its largest term.
        offsets, length, rows = _row_sizes(z, loss)
        inner = _unit_phases(offsets[:, None] * loss)
        exponent = log_weight + z.real[0] * loss
        peak = float(np.max(exponent))
        tilted = np.exp(exponent - peak)
        starts = z.imag[::length]
        parts = [
            inner @ (tilted[:, None] * _unit_phases(loss[:, None] * starts[i : i + rows]))
            for i in range(0, len(starts), rows)
        ]
        total = np.concatenate(parts, axis=1).T.ravel()[: len(z)]
        return np.asarray(np.log(np.where(total == 0, 5e-324, total)) + peak)
    if overflows:

        def log_weighted_sum(part: Complexes) -> Complexes:
            peaks = np.max(part.real[:, None] * loss + log_weight, axis=1)
            total = np.exp(part[:, None] * loss + (log_weight - peaks[:, None])) @ np.ones(len(loss))
            return np.asarray(np.log(total) + peaks)

        return _evaluate_in_chunks(z, loss, log_weighted_sum)
    if equidistant:
        # Σ w (e^{(z+ijh)l} − 1) for the nodes z + ijh of the row from z: e^{(z+ijh)l} − 1 is
        # (e^{zl} − 1) + e^{zl} (e^{ijhl} − 1). Both differences are computed without cancellation, and they are small
        # if |zl| and |jhl| are: so their sum has no large terms that cancel.
        offsets, length, rows = _row_sizes(z, loss)
        excess_in_row = _expm1_excess(np.asarray(1j * offsets, dtype=np.complex128), loss).T
        blocks = []
        for start in range(0, len(z), length * rows):
            excess_at_start = _expm1_excess(z[start : start + length * rows : length], loss)
            blocks.append((excess_at_start @ weight)[:, None] + ((excess_at_start + 1) * weight) @ excess_in_row)
        return log1p(np.asarray(np.concatenate(blocks).ravel()[: len(z)]))
    if not np.any(z.imag):
        return np.asarray(np.log1p(np.expm1(z.real[:, None] * loss) @ weight), dtype=np.complex128)
    return _evaluate_in_chunks(z, loss, lambda part: log1p(_expm1_excess(part, loss) @ weight))


def evaluate_by_height(z: Complexes, evaluate: Callable[[Complexes], Complexes]) -> Complexes:
    """Apply ``evaluate`` to blocks of nodes of similar |Im z|: the cost of a block depends on its largest |Im z|."""
    flat = np.asarray(z, dtype=np.complex128).ravel()
    result = np.empty_like(flat)
    order = np.argsort(np.abs(flat.imag), kind="stable")
    start = 0
    while start < len(order):
        max_height = 1.5 * abs(flat[order[start]].imag) + 32
        block = order[start:][np.abs(flat[order[start:]].imag) <= max_height]
        result[block] = evaluate(flat[block])
        start += len(block)
    return result.reshape(np.shape(z))


def _evaluate_in_chunks(z: Complexes, loss: Floats, evaluate: Callable[[Complexes], Complexes]) -> Complexes:
    rows = max(1, MAX_NODE_TABLE_CELLS // len(loss))
    return np.concatenate([evaluate(z[i : i + rows]) for i in range(0, len(z), rows)])


def _row_sizes(z: Complexes, loss: Floats) -> tuple[Floats, int, int]:
    """Return j·h for the nodes of a row, the number of nodes in a row, and the number of rows in memory at once."""
    length = min(MAX_ROW_LENGTH, math.isqrt(len(z)))
    step = (z.imag[-1] - z.imag[0]) / (len(z) - 1)
    return step * np.arange(length), length, max(1, MAX_NODE_TABLE_CELLS // len(loss))


def _unit_phases(angle: Floats) -> Complexes:
    """Return e^{ia}, by cosine and sine: several times as fast as numpy's complex exponential."""
    result = np.empty(angle.shape, dtype=np.complex128)
    np.cos(angle, out=result.real)
    np.sin(angle, out=result.imag)
    return result


def _expm1_excess(z: Complexes, loss: Floats) -> Complexes:
    """Return e^{zl} − 1 [n, k] without cancellation: expm1(a) cos b − 2 sin²(b/2) + i e^a sin b."""
    a, half = z.real[:, None] * loss, z.imag[:, None] * (loss / 2)
    sine, growth = np.sin(half), np.expm1(a)
    result = np.empty(a.shape, dtype=np.complex128)
    result.real = growth - 2 * (1 + growth) * sine**2
    result.imag = 2 * (1 + growth) * sine * np.cos(half)
    return result


# All sums of losses, for few copies of small finite distributions.

MAX_SUMS = 1 << 15
"""Largest number of sums that are enumerated."""
MAX_SUMMANDS = 1000
SAME_SUM = 1e-13
"""Sums this close, relative to the largest, are merged; their distance is added to the rounding bound."""


def enumerate_composition(total: Composition) -> Atoms | None:
    """Return the composed distribution as atoms; None if there are too many, or a distribution is not finite."""
    laws = [law for law in total.laws if isinstance(law, Atoms)]
    if len(laws) < len(total.laws) or sum(total.counts) > MAX_SUMMANDS:
        return None
    # The number of multisets of atoms.
    sum_count = math.prod(math.comb(n + len(law.losses) - 1, n) for law, n in zip(laws, total.counts, strict=True))
    if sum_count > MAX_SUMS:
        return None
    losses, masses, merge_distance = np.zeros(1), np.ones(1), 0.0
    for law, count in zip(laws, total.counts, strict=True):
        for _ in range(count):
            # Ascending sums; near ones are merged at the first of them.
            sums, sum_masses = np.add.outer(losses, law.losses).ravel(), np.multiply.outer(masses, law.masses).ravel()
            order = np.argsort(sums)
            sums, sum_masses = sums[order], sum_masses[order]
            differs = np.diff(sums) > SAME_SUM * max(1e-300, float(np.max(np.abs(sums))))
            starts = np.flatnonzero(np.append(True, differs))
            losses, masses = sums[starts], np.add.reduceat(sum_masses, starts)
            merge_distance += float(np.max(sums - np.repeat(losses, np.diff(np.append(starts, len(sums))))))
    opposite = probability_of_any((law.reverse_infinity_mass, n) for law, n in zip(laws, total.counts, strict=True))
    steps = sum(total.counts)
    slack = total.rounding_error_bound + merge_distance + 2.0**-53 * steps * float(np.max(np.abs(losses), initial=0.0))
    return Atoms(
        losses,
        masses,
        total.infinite_mass,
        opposite,
        slack,
        relative_mass_error=total.relative_mass_error + 4e-16 * (steps + 1),
    )


def enumerate_reverse_composition(total: Composition) -> Atoms | None:
    """Return the reverse-order composition, from the reversed distributions: masses may underflow on one side.

    Return None if the masses of a single distribution have underflowed.
    """
    exact = all(isinstance(law, Atoms) and law.has_exact_reverse for law in total.laws)
    return enumerate_composition(total.reverse_distribution()) if exact else None
