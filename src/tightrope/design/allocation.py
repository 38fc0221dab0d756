"""Least noise for several answers under one budget: families and one common size, by the exact composed curve."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from scipy.special import ndtri

from tightrope.certificates.budget import Budget
from tightrope.design.families import (
    DiscreteGaussian,
    DiscreteLaplace,
    DiscreteStaircase,
    Family,
    Need,
    TruncatedLaplace,
    Weights,
)
from tightrope.design.units import Choice, ShiftLoss, Spend, Unit, all_spends, lattice_unit, needs, total_loss
from tightrope.errors import BudgetRefused
from tightrope.mechanisms.integer_optimum import optimal_table
from tightrope.mechanisms.table import NoiseTable
from tightrope.privacy.cells import Cells
from tightrope.privacy.gaussian import GaussianLaw
from tightrope.privacy.loss import PrivacyLoss
from tightrope.privacy.masses import Masses, Window
from tightrope.privacy.neighbours import Neighbours

COARSE, FINE = 160, 640
"""Least number of lattice points for the budget's ε: while searching, and for the certificate."""
REACH = 1.7
"""The window holds losses up to this many times the largest ε; what lies beyond counts as infinite."""
SAFETY = 1e-9
"""Relative margin of the certificate over the rounding of its sums."""
ROUGH, CLOSE = 2e-4, 2e-6
"""How near the least size is approached: while families compete, and for the one that is chosen."""
SMALLEST, FARTHEST = 1e-3, 60
"""Least size searched, in shifts of one row; and the largest, in sizes at which Laplace noise would do."""
MOST_EPSILON = 50
"""Releases above this ε are refused: one output could be e^50 times as likely."""
MOST_NOISE = 20_000
"""Noise of more rows than this in every answer is refused: it would be of no use, and its tables too long."""
LONGEST = 2000
"""Lattice points for the budget's ε at most."""
FAMILIES: tuple[Family, ...] = (
    TruncatedLaplace(0.999999),
    TruncatedLaplace(0.5),
    DiscreteLaplace(),
    DiscreteStaircase(),
    DiscreteGaussian(),
)


@dataclass(frozen=True, slots=True)
class Allocation:
    """The choices, by unit and spend; the loss of everything; the error of each family relative to the chosen one."""

    choices: tuple[tuple[Choice, ...], ...]
    loss: PrivacyLoss
    alternatives: dict[str, float]


def allocate(units: Sequence[Unit], budget: Budget) -> Allocation:
    """The least noise for which the exact composed loss keeps every point of the budget.

    One family for all spends (bounded ones keep a bounded family) at the least common size; the family with the
    least sum of E|X| over relative sizes wins. Every unit is dominated by the pointwise maximum over the ways one
    person's rows may fall; units compose with **parameters fixed in advance**. Neighbours: add or remove one person.
    Raises ``BudgetRefused`` where no size will do.
    """
    search = Search(tuple(units), budget)
    optimum = _optimum(search)
    if optimum is not None:
        return optimum
    trials = [_trial(search, family) for family in FAMILIES]
    least = min(trial.error for trial in trials)
    best = next(trial for trial in trials if trial.error <= least * (1 + 2 * ROUGH))
    if not math.isfinite(least):
        raise BudgetRefused(f"no noise keeps {budget} for {len(search.units)} answers; raise epsilon or delta")
    choices, loss = search.certify(best.families, best.size)
    ordered = sorted(trials, key=lambda trial: -trial.error)
    relative = {t.name: t.error / best.error for t in ordered if math.isfinite(t.error)}
    return Allocation(choices, loss, relative)


def _optimum(search: Search) -> Allocation | None:
    """One vector of counts with one row a person: no integer noise beats the closed form (theory §4.1)."""
    (spend, *others), (need, *_) = all_spends(search.units), needs(search.units, 1.0, search.delta)
    capped = min(delta for _, delta in search.points) <= search.delta
    if others or not spend.whole_rows or need.parts != (1,) or not capped:
        return None
    table = optimal_table(search.points)
    if spend.bounded and not math.isfinite(table.worst):
        return None
    law = table.atoms(1)
    loss = PrivacyLoss.of(law, reverse=law, neighbours=Neighbours.ADD_REMOVE)
    return Allocation(((Choice(spend, "least noise (closed form)", 1, table),),), loss, {})


@dataclass(frozen=True, slots=True)
class Trial:
    """A family for every spend, the least common size that keeps the budget, and the error it comes to."""

    name: str
    families: tuple[Family, ...]
    size: float
    error: float


def _trial(search: Search, family: Family) -> Trial:
    bounded = family if isinstance(family, TruncatedLaplace) else TruncatedLaplace()
    families = tuple(bounded if spend.bounded else family for spend in all_spends(search.units))
    size = search.least_size(families)
    return Trial(family.name, families, size, search.error(families, size))


@dataclass(frozen=True, slots=True)
class Search:
    """One budget, many trials."""

    units: tuple[Unit, ...]
    budget: Budget

    @property
    def delta(self) -> float:
        """The stated δ, rounded to the private side."""
        return math.nextafter(float(self.budget.delta), 0.0)

    @property
    def points(self) -> list[tuple[float, float]]:
        """The budget's points as floats, rounded to the private side."""
        return [(math.nextafter(float(e), 0.0), math.nextafter(float(d), 0.0)) for e, d in self.budget.points]

    @property
    def scale(self) -> float:
        """The largest ε; for a total variation alone, the ε that Gaussian noise would have."""
        return max(float(e) or _gaussian_epsilon(float(d), self.delta) for e, d in self.budget.points)

    def window(self, size: float, resolution: int) -> Window:
        """A lattice on which the losses of all exponential laws of this common size lie exactly."""
        natural = 8 / (lattice_unit(self.units, size) * size)
        step = max(natural / max(1, math.ceil(resolution * natural / self.scale)), self.scale / LONGEST)
        return Window(step, math.ceil(REACH * self.scale / step))

    def least_size(self, families: Sequence[Family]) -> float:
        """Least common size that passes on the coarse lattice, to ``ROUGH``; ∞ where none does."""
        if self.scale > MOST_EPSILON:
            raise BudgetRefused(f"epsilon {self.scale:g} protects nobody; release with epsilon <= {MOST_EPSILON}")
        high = most = self._adding_up()
        if most > MOST_NOISE:
            raise BudgetRefused(
                f"{self.budget} needs noise of about {most:.3g} rows in each answer; "
                f"raise epsilon to {float(self.scale) * most / MOST_NOISE:.2g} or more, or ask fewer questions"
            )
        while not self._passes(families, high, COARSE):
            high *= 1.5
            if high > FARTHEST * most:
                return math.inf
        low = high / 2
        while low > SMALLEST and self._passes(families, low, COARSE):
            low, high = low / 2, low
        return self._bisected(families, (low, high), COARSE, ROUGH)

    def _bisected(
        self, families: Sequence[Family], around: tuple[float, float], resolution: int, within: float
    ) -> float:
        """The end that passes of an interval around the least size."""
        low, high = around
        while high > low * (1 + within):
            middle = math.sqrt(low * high)
            low, high = (low, middle) if self._passes(families, middle, resolution) else (middle, high)
        return high

    def _adding_up(self) -> float:
        """The size at which Laplace noise keeps the largest ε by adding up losses."""
        rows = math.fsum(unit.contribution.most_rows / spend.size for unit in self.units for spend in unit.spends)
        return rows / self.scale

    def _passes(self, families: Sequence[Family], size: float, resolution: int) -> bool:
        weights = self._weights(families, size)
        return self._keeps(self._total([law.cells for law in weights], size, resolution))

    def _total(self, losses: Sequence[ShiftLoss], size: float, resolution: int) -> Masses:
        shifts = [need.shift for need in needs(self.units, size, self.delta)]
        return total_loss(self.units, losses, shifts, self.window(size, resolution))

    def _keeps(self, total: Masses) -> bool:
        """Whether a composed law meets every point, with the margin."""
        infinite = total.infinite_mass <= self.delta * (1 - SAFETY)
        return infinite and all(total.delta(e) <= d * (1 - SAFETY) for e, d in self.points)

    def _weights(self, families: Sequence[Family], size: float) -> list[Weights]:
        spends, wanted = all_spends(self.units), needs(self.units, size, self.delta)
        return [f.weights(size * s.size, need) for f, s, need in zip(families, spends, wanted, strict=True)]

    def error(self, families: Sequence[Family], size: float) -> float:
        """Sum over the spends of E|X| in shifts of one row, each over its relative size."""
        if not math.isfinite(size):
            return math.inf
        triples = zip(
            self._weights(families, size), all_spends(self.units), needs(self.units, size, self.delta), strict=True
        )
        return math.fsum(weights.mean_absolute / need.shift / spend.size for weights, spend, need in triples)

    def certify(self, families: Sequence[Family], size: float) -> tuple[tuple[tuple[Choice, ...], ...], PrivacyLoss]:
        """Integer tables at the least size that passes on the fine lattice; the loss is computed from those tables."""
        size = self._bisected(families, (size * (1 - 4 * ROUGH), size * (1 + ROUGH)), FINE, CLOSE)
        for _ in range(100):
            tables = [weights.table() for weights in self._weights(families, size)]
            total = self._total([_exact(table) for table in tables], size, FINE)
            if self._keeps(total):
                return self._choices(families, tables, size), _loss(total)
            size *= 1 + CLOSE
        raise BudgetRefused(f"no integer table keeps {self.budget}; raise delta")

    def _choices(
        self, families: Sequence[Family], tables: Sequence[NoiseTable], size: float
    ) -> tuple[tuple[Choice, ...], ...]:
        chosen = iter(zip(families, tables, needs(self.units, size, self.delta), strict=True))
        return tuple(tuple(_choice(spend, *next(chosen)) for spend in unit.spends) for unit in self.units)


def _choice(spend: Spend, family: Family, table: NoiseTable, need: Need) -> Choice:
    return Choice(spend, family.name, need.shift, table)


def _exact(table: NoiseTable) -> ShiftLoss:
    """The loss from the integer weights; what rounding may have taken from a loss is added to it."""

    def cells(shift: int) -> Cells:
        return table.atoms(shift).raised().cells(0.0)

    return cells


def _loss(total: Masses) -> PrivacyLoss:
    """All noise here is symmetric, so adding and removing a person have the same law."""
    law = total.atoms()
    return PrivacyLoss.of(law, reverse=law, neighbours=Neighbours.ADD_REMOVE)


def _gaussian_epsilon(total_variation: float, delta: float) -> float:
    """ε at δ of the Gaussian with this total variation: the scale of losses where only η is asked for."""
    mu = 2 * float(ndtri((1 + total_variation) / 2))
    return max(PrivacyLoss.of(GaussianLaw(max(mu, 1e-6))).epsilon(max(delta, 1e-300)), mu)
