"""One budget, many trials: the least common size of a choice of families, and the tables that it comes to."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from scipy.special import ndtri

from tightrope.certificates.budget import Budget
from tightrope.design.allocation.units import (
    MOST_BOX_CELLS,
    Choice,
    ShiftLoss,
    Spend,
    Unit,
    all_spends,
    box_cells,
    lattice_unit,
    needs,
    total_loss,
)
from tightrope.errors import BudgetRefused, InputError
from tightrope.mechanisms.families.box_weights import BoxWeights
from tightrope.mechanisms.families.family import Family
from tightrope.mechanisms.families.weights import Need, Weights
from tightrope.mechanisms.tables.box_table import AnyTable
from tightrope.numerics.search import least_size
from tightrope.privacy.laws.gaussian import GaussianLaw
from tightrope.privacy.laws.gaussian_size import gaussian_reach
from tightrope.privacy.laws.loss_cells import Cells
from tightrope.privacy.loss import PrivacyLoss
from tightrope.privacy.masses import Masses, Window
from tightrope.privacy.neighbours import Neighbours

COARSE, FINE = 160, 640
"""Least number of lattice points for the budget's ε: while searching, and for the certificate."""
WINDOW_REACH = 1.7
"""The window holds losses up to this many times its scale; what lies beyond counts as infinite."""
SAFETY = 1e-9
"""Relative margin of the certificate over the rounding of its sums."""
ROUGH, CLOSE = 2e-4, 2e-6
"""How near the least size is approached: while families compete, and for the one that is chosen."""
TABLES = 100
"""Integer tables that are tried, each a little larger than the last."""
FINER = 1.5
"""The least size on the fine lattice is sought within this factor of that on the coarse one."""
SMALLEST, FARTHEST = 1e-3, 60
"""Least size searched, in shifts of one row; and the largest, in sizes at which Laplace noise would do."""
FIRST_WIDTH, NEXT_WIDTH = 0.3, 0.02
"""How far apart, in logarithms, the first two sizes of a search are: at a guess, and beside a law that is alike."""
MOST_EPSILON = 40.0
"""The largest ε that noise is made for: a budget that allows more is kept by what keeps this. Further on there is next
to no noise, and a total variation that doubles cannot tell from one."""
MOST_NOISE = 20_000
"""Noise of more rows than this in every answer is refused: it would be of no use, and its tables too long."""
LONGEST_LATTICE = 2000
"""Lattice points for the budget's ε at most."""

Law = Weights | BoxWeights


class NoTableError(BudgetRefused):
    """Whole numbers cannot be shown to keep what a law in floats keeps."""


@dataclass(frozen=True, slots=True)
class Search:
    """One budget, many trials."""

    units: tuple[Unit, ...]
    budget: Budget
    most_epsilon: float = MOST_EPSILON
    """A larger ε is sought as this one: what keeps it keeps more."""
    fullest: bool = False
    """Whether units with too many splits to go through are replaced by one split: a bound from below on the noise."""

    @property
    def delta(self) -> float:
        """The stated δ, rounded to the private side."""
        return math.nextafter(float(self.budget.delta), 0.0)

    @property
    def points(self) -> list[tuple[float, float]]:
        """The budget's points as floats, rounded to the private side."""
        return [(min(e, self.most_epsilon), math.nextafter(d, 0.0)) for e, d in self.budget.rounded]

    @property
    def scale(self) -> float:
        """The largest ε that is used, or a larger one, so that the window holds what losses add to a large δ.

        Of a total variation alone it is the ε that Gaussian noise would have.
        """
        return min(self.most_epsilon, max(_scale(e, d, self.delta) for e, d in self.budget.rounded))

    def window(self, size: float, resolution: int) -> Window:
        """A lattice on which the losses of all exponential laws of this common size lie exactly, where it is fine."""
        natural = 8 / (lattice_unit(self.units, size) * size)
        step = max(natural / max(1, math.ceil(resolution * natural / self.scale)), self.scale / LONGEST_LATTICE)
        return Window(step, math.ceil(WINDOW_REACH * self.scale / step))

    def least_size(self, families: Sequence[Family], guess: float | None = None) -> float:
        """Least common size that passes on the coarse lattice, to ``ROUGH``; ∞ where none does."""
        most = self._adding_up()
        self._refuse(most)
        if not box_cells(self.units, most, self.delta) <= MOST_BOX_CELLS:
            raise BudgetRefused("numbers of one box have too many losses here: noise of their own will do")
        limits = (min(SMALLEST, most), FARTHEST * most)
        start, width = (most, FIRST_WIDTH) if guess is None else (guess, NEXT_WIDTH)
        return least_size(
            lambda size: self._excess(families, size, COARSE), start, width=width, within=ROUGH / 2, limits=limits
        )

    def passes(self, families: Sequence[Family], size: float) -> bool:
        """Whether a size keeps the budget, on the coarse lattice."""
        return self._excess(families, size, COARSE) <= 0

    def _refuse(self, most: float) -> None:
        """Raises ``BudgetRefused`` where no noise would be of any use."""
        if most > MOST_NOISE:
            raise BudgetRefused(
                f"{self.budget} needs noise of about {most:.3g} rows in each answer; "
                f"{self._raised(most / MOST_NOISE)}, or ask fewer questions"
            )

    def _raised(self, factor: float) -> str:
        """Which number of the budget to raise, as it was asked for, and how far an ε."""
        name = self.budget.asked[0]
        return f"raise epsilon to {self.scale * factor:.2g} or more" if name == "epsilon" else f"raise {name}"

    def _adding_up(self) -> float:
        """The size at which Laplace noise keeps the largest ε by adding up losses."""
        rows = math.fsum(unit.contribution.most_rows / spend.size for unit in self.units for spend in unit.spends)
        return rows / self.scale

    def _excess(self, families: Sequence[Family], size: float, resolution: int) -> float:
        weights = self._weights(families, size)
        return self._beyond(self._total([law.cells for law in weights], size, resolution))

    def _total(self, losses: Sequence[ShiftLoss], size: float, resolution: int) -> Masses:
        shifts = [need.shift for need in needs(self.units, size, self.delta)]
        return total_loss(self.units, losses, shifts, self.window(size, resolution), fullest=self.fullest)

    def _keeps(self, total: Masses) -> bool:
        """Whether a composed law meets every point, with the margin."""
        return self._beyond(total) <= 0

    def _beyond(self, total: Masses) -> float:
        """The largest log of δ over what is allowed, the margin taken off; at most 0 where every point is met."""
        found = [(total.infinite_mass, self.delta), *((total.delta(e), d) for e, d in self.points)]
        return max(_log_ratio(most, allowed * (1 - SAFETY)) for most, allowed in found)

    def _weights(self, families: Sequence[Family], size: float) -> list[Law]:
        """Spends that are alike share one law."""
        law = cache(lambda family, relative, need, many: _shaped(family.weights(size * relative, need), many))
        spends, wanted = all_spends(self.units), needs(self.units, size, self.delta)
        return [law(f, s.size, need, s.dimension) for f, s, need in zip(families, spends, wanted, strict=True)]

    def error(self, families: Sequence[Family], size: float) -> float:
        """Sum over all numbers of E|X| in shifts of one row, each over the relative size that it was to have."""
        if not math.isfinite(size):
            return math.inf
        triples = zip(
            self._weights(families, size), all_spends(self.units), needs(self.units, size, self.delta), strict=True
        )
        return math.fsum(
            _mean_absolute(law, spend) / need.shift / spend.wanted * spend.dimension for law, spend, need in triples
        )

    def certify(
        self, families: Sequence[Family], size: float
    ) -> tuple[tuple[tuple[Choice, ...], ...], PrivacyLoss, Window]:
        """Integer tables at the least size that passes on the fine lattice; the loss is computed from those tables."""
        size = least_size(
            lambda near: self._excess(families, near, FINE),
            size,
            width=ROUGH,
            within=CLOSE / 2,
            limits=(size / FINER, size * FINER),
        )
        tries = TABLES if math.isfinite(size) else 0
        for near in (size * (1 + CLOSE) ** i for i in range(tries)):
            tables = list(map(cache(_table), self._weights(families, near)))
            try:
                total = self._total(list(map(cache(_exact), tables)), near, FINE)
            except InputError:  # a shift over more of an endless table than is listed: a larger size is flatter
                continue
            if self._keeps(total) and self._states(loss := _loss(total)):
                return self._choices(families, tables, near), loss, total.window
        raise NoTableError(f"no integer table keeps {self.budget}; raise delta")

    def _states(self, loss: PrivacyLoss) -> bool:
        """Whether what is written down, its rounding included, keeps the points: it shows where δ is below 1e−11."""
        return all(float(loss.delta(epsilon)) <= delta for epsilon, delta in self.points)

    def _choices(
        self, families: Sequence[Family], tables: Sequence[AnyTable], size: float
    ) -> tuple[tuple[Choice, ...], ...]:
        chosen = iter(zip(families, tables, needs(self.units, size, self.delta), strict=True))
        return tuple(tuple(_choice(spend, *next(chosen)) for spend in unit.spends) for unit in self.units)


def _log_ratio(found: float, allowed: float) -> float:
    """Log of found / allowed, of the right sign whatever the rounding."""
    if found <= allowed:
        return min(0.0, math.log(found / allowed)) if found > 0 else -math.inf
    return max(math.ulp(0.0), math.log(found / allowed)) if allowed > 0 else math.inf


def _shaped(law: Weights, dimension: int) -> Law:
    """The law of one number, or of several in the shape of a box."""
    return law if dimension == 1 else BoxWeights.of(law, dimension)


def _mean_absolute(law: Law, spend: Spend) -> float:
    """E|X| in steps; where steps are stretched E|X + U₁ − U₂|, which is |x| but at 0, where it is 1/3."""
    return law.mean_absolute + (0.0 if spend.whole_rows else law.at_zero / 3)


def _table(law: Law) -> AnyTable:
    return law.table()


def _choice(spend: Spend, family: Family, table: AnyTable, need: Need) -> Choice:
    return Choice(spend, family.name, need.shift, table)


def _exact(table: AnyTable) -> ShiftLoss:
    """The loss from the integer weights; what rounding may have taken from a loss is added to it."""

    def cells(shift: int) -> Cells:
        return table.atoms(shift).raised().cells(0.0)

    return cells


def _loss(total: Masses) -> PrivacyLoss:
    """All noise here is symmetric, so adding and removing a person have the same law."""
    law = total.atoms()
    return PrivacyLoss.of(law, reverse=law, neighbours=Neighbours.ADD_REMOVE)


def _scale(epsilon: float, delta: float, lost: float) -> float:
    """ε, but for a δ that is large beside it: there losses far beyond ε are part of δ, and not lost altogether."""
    if not epsilon:
        return _gaussian_epsilon(delta, lost)
    return max(epsilon, gaussian_reach(epsilon, delta) / WINDOW_REACH) if delta > 0 else epsilon


def _gaussian_epsilon(total_variation: float, delta: float) -> float:
    """ε at δ of the Gaussian with this total variation: the scale of losses where only η is asked for."""
    mu = 2 * float(ndtri((1 + total_variation) / 2))
    return max(PrivacyLoss.of(GaussianLaw(max(mu, 1e-6))).epsilon(max(delta, 1e-300)), mu)
