"""Least noise for several answers under one budget: families and one common size, by the exact composed curve."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

import scipy
from scipy.special import ndtri

from tightrope.accounting.distributions.gaussian import GaussianLaw, gaussian_reach
from tightrope.accounting.distributions.loss_cells import Cells
from tightrope.accounting.loss_pmf import Masses, Window
from tightrope.accounting.neighbors import Neighbours
from tightrope.accounting.privacy_loss import PrivacyLoss
from tightrope.documents.budget import Budget
from tightrope.errors import BudgetRefused, InputError
from tightrope.mechanisms.discrete.box_table import AnyTable
from tightrope.mechanisms.discrete.integer_tables import optimal_table
from tightrope.noise.families import Family, Laplace, Shaped, TruncatedLaplace, offered
from tightrope.noise.family_weights import BoxWeights, Need, Weights
from tightrope.noise.worst_split import (
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
from tightrope.numerics.root_finding import least_size

# One budget, many trials: the least common size of a choice of families, and the tables that it comes to.

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
        return self._largest_excess(self._total([law.cells for law in weights], size, resolution))

    def _total(self, losses: Sequence[ShiftLoss], size: float, resolution: int) -> Masses:
        shifts = [need.shift for need in needs(self.units, size, self.delta)]
        return total_loss(self.units, losses, shifts, self.window(size, resolution), fullest=self.fullest)

    def _keeps(self, total: Masses) -> bool:
        """Whether a composed law meets every point, with the margin."""
        return self._largest_excess(total) <= 0

    def _largest_excess(self, total: Masses) -> float:
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
            _mean_absolute(law, spend) / need.shift / spend.relative_size * spend.dimension
            for law, spend, need in triples
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
        # ε at δ of the Gaussian with this total variation: the scale of losses where only η is asked for.
        mu = 2 * float(ndtri((1 + delta) / 2))
        return max(PrivacyLoss.of(GaussianLaw(max(mu, 1e-6))).epsilon(max(lost, 1e-300)), mu)
    return max(epsilon, gaussian_reach(epsilon, delta) / WINDOW_REACH) if delta > 0 else epsilon


KEYS = TruncatedLaplace()
"""What hides keys beside a family whose largest value is too large for that, or that has none."""
CHOICES = Laplace()
"""What choices are charged as, beside any family."""
SHAPE_WITHIN, MOST_SHAPES = 0.04, 5
"""Shapes of a family with two knobs that are tried: how near the best, and how many."""
SMALLER = (36.0, 32.0, 28.0, 24.0, 20.0, 16.0, 12.0, 8.0)
"""What a larger ε is taken as, in this order, where no integer table keeps it."""
HOPELESS = 1.6
"""Where Gaussian noise is so much larger than the best, no law between it and Laplace noise was seen to be smaller."""


@dataclass(frozen=True, slots=True)
class Allocation:
    """The choices, by unit and spend; the loss of everything; the error of each family relative to the chosen one."""

    choices: tuple[tuple[Choice, ...], ...]
    loss: PrivacyLoss
    alternatives: dict[str, float]
    spare: float | None = None
    """The part of the noise, at most, that a bound on more rows than can be gone through may cost; None: there is none.
    """
    window: Window | None = None
    """The lattice on which the loss was composed; None: it is that of the one table."""
    error: float = math.inf
    """Sum over all numbers of E|X| in shifts of one row, each over the relative size that it was to have."""
    families: tuple[Family, ...] = ()
    """The family of each spend; none where no size was sought."""
    name: str = ""
    """What the families are called together."""
    losses: float = math.inf
    """The common size, times the largest ε of the budget: much the same for other budgets."""


def allocate(
    units: Sequence[Unit], budget: Budget, *, compare: bool = True, like: Allocation | None = None
) -> Allocation:
    """The least noise for which the exact composed loss keeps every point of the budget.

    One family for all spends (bounded ones keep a bounded family) at the least common size; the family with the
    least sum of E|X| over relative sizes wins. Every unit is dominated by the pointwise maximum over the ways one
    person's rows may fall; units compose with **parameters fixed in advance**. Neighbours: add or remove one person.
    ``compare=False`` saves the sizes of families that are ``HOPELESS``: they are no alternatives then. ``like`` one for
    another budget tries its families alone, which is much faster.
    Where δ = 0 no noise may end, so no keys are hidden. Raises ``BudgetRefused`` where no size will do.

    ε above ``MOST_EPSILON`` is kept as that. Where no table of whole numbers can be shown to keep a large ε, the noise
    of the next smaller one in ``SMALLER`` does: it keeps the budget, and its certificate says what it realises.
    """
    for most in (MOST_EPSILON, *SMALLER):
        search = Search(tuple(units), budget, most)
        try:
            if not search.delta > 0 and any(spend.bounded for spend in all_spends(search.units)):
                raise BudgetRefused(
                    "keys cannot be discovered at delta = 0: list them with keys=[...], or allow a delta such as 1e-12"
                )
            if like is not None and like.families:
                size = search.least_size(like.families, like.losses / search.scale)
                return _least_error_trial(
                    search, [Trial(like.name, like.families, size, search.error(like.families, size))]
                )
            return _optimum(search) or _least_error_trial(search, _trials(search, compare=compare))
        except NoTableError as error:
            refused = error
            if not max(epsilon for epsilon, _ in budget.rounded) > SMALLER[-1]:
                break
    raise refused


def _trials(search: Search, *, compare: bool) -> list[Trial]:
    """What each family comes to; those with a shape last, for they begin near what the others found."""
    if all(spend.chooses for spend in all_spends(search.units)):
        return [_trial(search, CHOICES)]
    planned = [family for family in offered() if family.planned and (search.delta > 0 or not family.bounded)]
    trials: list[Trial] = []
    for law in (law for family in planned if not isinstance(family, Shaped) for law in family.variants):
        trials.append(_rival(search, law, trials, compare=compare))
    return trials + [_tuned(search, family, trials) for family in planned if isinstance(family, Shaped)]


def _rival(search: Search, law: Family, trials: Sequence[Trial], *, compare: bool) -> Trial:
    """The trial of one law; where nothing is compared, a hopeless one is not sized."""
    least = min((trial.size for trial in trials), default=math.inf)
    beaten = not compare and math.isfinite(least) and not search.passes(_families(search, law), HOPELESS * least)
    return _none(law.name) if beaten else _trial(search, law)


def _least_error_trial(search: Search, trials: Sequence[Trial]) -> Allocation:
    """The trial with the least error, certified; among those as good as equal, the first."""
    least = min(trial.error for trial in trials)
    if not math.isfinite(least):
        raise BudgetRefused(
            f"no noise keeps {search.budget} for {len(search.units)} answers; raise {' or '.join(search.budget.asked)}"
        )
    best = next(trial for trial in trials if trial.error <= least * (1 + 2 * ROUGH))
    choices, loss, window = search.certify(best.families, best.size)
    ordered = sorted(trials, key=lambda trial: -trial.error)
    relative = {t.name: t.error / best.error for t in ordered if math.isfinite(t.error)}
    said = best.error, best.families, best.name, best.size * search.scale
    # How much smaller noise could be, at most, if the bound on many rows were exact: the fullest split needs it.
    if all(unit.contribution.exact for unit in search.units):
        spare = None
    else:
        needed = replace(search, fullest=True).least_size(best.families, best.size)
        spare = max(0.0, 1 - needed / best.size) if math.isfinite(needed) else 1.0
    return Allocation(choices, loss, relative, spare, window, *said)


def _optimum(search: Search) -> Allocation | None:
    """One vector of counts with one row a person: no integer noise beats the closed form (theory §4.1)."""
    (spend, *others), (need, *_) = all_spends(search.units), needs(search.units, 1.0, search.delta)
    capped = min(delta for _, delta in search.points) <= search.delta
    if others or not spend.whole_rows or need.parts != (1,) or not capped:
        return None
    try:
        table = optimal_table(search.points)
    except InputError:  # too long a table: the search refuses in words of the budget
        return None
    if spend.bounded and not math.isfinite(table.worst):
        return None
    law = table.atoms(1)
    loss = PrivacyLoss.of(law, reverse=law, neighbours=Neighbours.ADD_REMOVE)
    choice = Choice(spend, "least noise (closed form)", 1, table)
    return Allocation(((choice,),), loss, {}, error=table.mean_absolute / spend.relative_size)


@dataclass(frozen=True, slots=True)
class Trial:
    """A family for every spend, the least common size that keeps the budget, and the error it comes to."""

    name: str
    families: tuple[Family, ...]
    size: float
    error: float


def _none(name: str) -> Trial:
    """A family that no size was sought for."""
    return Trial(name, (), math.inf, math.inf)


def _tuned(search: Search, family: Shaped, trials: Sequence[Trial]) -> Trial:
    """The family's best shape; none (an error of ∞) where the family that it is near to is hopeless."""
    least, beside = min(trials, key=lambda trial: trial.error), {trial.name: trial.error for trial in trials}
    if not beside.get(family.near, least.error) < HOPELESS * least.error:
        return _none(family.name)
    found: list[Trial] = []

    def error(shape: float) -> float:
        guess = found[-1].size if found else least.size
        found.append(_trial(search, family.at(shape), guess))
        return found[-1].error

    scipy.optimize.minimize_scalar(
        error, bounds=family.ends, method="bounded", options={"xatol": SHAPE_WITHIN, "maxiter": MOST_SHAPES}
    )
    return min(found, key=lambda trial: trial.error)


def _trial(search: Search, family: Family, guess: float | None = None) -> Trial:
    families = _families(search, family)
    size = search.least_size(families, guess)
    return Trial(family.name, families, size, search.error(families, size))


def _families(search: Search, family: Family) -> tuple[Family, ...]:
    """The family for every spend, one that hides keys where they are discovered; choices have their own."""
    hiding = family if family.hides_keys else KEYS
    return tuple(
        CHOICES if spend.chooses else hiding if spend.bounded else family for spend in all_spends(search.units)
    )
