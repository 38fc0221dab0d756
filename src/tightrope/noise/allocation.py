"""Least noise for several answers under one budget: families and one common size, by the exact composed curve."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

import scipy
from scipy.special import ndtri

from tightrope.accounting.distributions.atoms import Atoms
from tightrope.accounting.distributions.gaussian import GaussianLossDistribution, gaussian_reach
from tightrope.accounting.distributions.loss_cells import LossCells
from tightrope.accounting.loss_pmf import LossLattice, LossPMF
from tightrope.accounting.neighbors import Neighbors
from tightrope.accounting.privacy_loss import PrivacyLoss
from tightrope.documents.budget import Budget
from tightrope.errors import InputError, InsufficientBudgetError
from tightrope.mechanisms.discrete.box_table import AnyTable
from tightrope.mechanisms.discrete.integer_tables import optimal_table
from tightrope.noise.families import (
    LaplaceFamily,
    NoiseFamily,
    ShapedFamily,
    TruncatedLaplaceFamily,
    registered_families,
)
from tightrope.noise.family_weights import BoxWeights, FloatWeights, NoiseRequirement
from tightrope.noise.worst_split import (
    MOST_BOX_CELLS,
    CompositionGroup,
    SelectedNoise,
    ShiftLoss,
    all_noise_specs,
    estimated_box_cells,
    lattice_unit,
    noise_requirements,
    total_loss,
)
from tightrope.numerics.root_finding import least_size

# One budget, many trials: the least common size of each choice of families, and the resulting tables.

COARSE, FINE = 160, 640
"""Least number of lattice points for the budget's ε: while searching, and for the certificate."""
WINDOW_REACH = 1.7
"""The window holds losses up to this many times its scale; larger losses count as infinite."""
SAFETY = 1e-9
"""Relative margin of the certificate over the rounding of its sums."""
ROUGH, CLOSE = 2e-4, 2e-6
"""Relative tolerances of the least size: while families are compared, and for the selected one."""
TABLES = 100
"""Integer tables that are tried, each a little larger than the last."""
FINER = 1.5
"""The least size on the fine lattice is searched within this factor of the size on the coarse one."""
SMALLEST, FARTHEST = 1e-3, 60
"""Least size searched, in shifts of one row; and the largest, in sizes at which Laplace noise would do."""
FIRST_WIDTH, NEXT_WIDTH = 0.3, 0.02
"""Log-distance of the first two sizes of a search: from a guess, and from the size of a similar distribution."""
MOST_EPSILON = 40.0
"""The largest ε for which noise is computed: it also meets a budget that allows more. For larger ε the noise is
negligible, and the total variation is 1 in double precision."""
MOST_NOISE = 20_000
"""Noise of more rows than this in every answer is rejected: it would be useless, and its tables too long."""
LONGEST_LATTICE = 2000
"""Lattice points for the budget's ε at most."""

Law = FloatWeights | BoxWeights


class NoTableError(InsufficientBudgetError):
    """Raised if an integer table cannot be shown to meet the budget that a distribution in floats meets."""


@dataclass(frozen=True, slots=True)
class NoiseSearch:
    """One budget, many trials."""

    groups: tuple[CompositionGroup, ...]
    budget: Budget
    epsilon_cap: float = MOST_EPSILON
    """A larger ε is replaced by this one: noise that meets it meets the larger one, too."""
    only_fullest_split: bool = False
    """If True, units with too many splits to enumerate are replaced by one split: a lower bound on the noise."""

    @property
    def private_delta(self) -> float:
        """The stated δ, rounded to the private side."""
        return math.nextafter(float(self.budget.delta), 0.0)

    @property
    def private_points(self) -> list[tuple[float, float]]:
        """The budget's points as floats, rounded to the private side."""
        return [(min(e, self.epsilon_cap), math.nextafter(d, 0.0)) for e, d in self.budget.rounded_points]

    @property
    def loss_scale(self) -> float:
        """The largest ε that is used, or a larger one, so that the window holds what losses add to a large δ.

        Of a total variation alone it is the ε that Gaussian noise would have.
        """
        scales = []
        for epsilon, delta in self.budget.rounded_points:
            if not epsilon:
                # ε at δ of the Gaussian with this total variation: the scale of losses where only η is requested.
                mu = 2 * float(ndtri((1 + delta) / 2))
                gaussian_loss = PrivacyLoss.from_distribution(GaussianLossDistribution(max(mu, 1e-6)))
                scales.append(max(gaussian_loss.epsilon(max(self.private_delta, 1e-300)), mu))
            else:
                # If δ is relatively large, losses far beyond ε are part of δ, and not lost altogether.
                scales.append(max(epsilon, gaussian_reach(epsilon, delta) / WINDOW_REACH) if delta > 0 else epsilon)
        return min(self.epsilon_cap, max(scales))

    def loss_lattice(self, size: float, resolution: int) -> LossLattice:
        """Return a lattice that contains all losses of exponential distributions of this common size, if it is fine."""
        natural = 8 / (lattice_unit(self.groups, size) * size)
        step = max(
            natural / max(1, math.ceil(resolution * natural / self.loss_scale)), self.loss_scale / LONGEST_LATTICE
        )
        return LossLattice(step, math.ceil(WINDOW_REACH * self.loss_scale / step))

    def least_size(self, families: Sequence[NoiseFamily], guess: float | None = None) -> float:
        """Return the least common size that passes on the coarse lattice, to ``ROUGH``; ∞ if all sizes fail."""
        most = self._laplace_size()
        self._refuse_useless_noise(most)
        if not estimated_box_cells(self.groups, most, self.private_delta) <= MOST_BOX_CELLS:
            raise InsufficientBudgetError("numbers of one box have too many losses here: noise of their own will do")
        limits = (min(SMALLEST, most), FARTHEST * most)
        start, width = (most, FIRST_WIDTH) if guess is None else (guess, NEXT_WIDTH)
        return least_size(
            lambda size: self._size_excess(families, size, COARSE), start, width=width, within=ROUGH / 2, limits=limits
        )

    def passes_coarsely(self, families: Sequence[NoiseFamily], size: float) -> bool:
        """Return whether a size meets the budget, on the coarse lattice."""
        return self._size_excess(families, size, COARSE) <= 0

    def _refuse_useless_noise(self, most: float) -> None:
        """Raises ``InsufficientBudgetError`` where no noise would be of any use."""
        if most > MOST_NOISE:
            raise InsufficientBudgetError(
                f"{self.budget} needs noise of about {most:.3g} rows in each answer; "
                f"{self._raise_budget_hint(most / MOST_NOISE)}, or ask fewer questions"
            )

    def _raise_budget_hint(self, factor: float) -> str:
        """Return advice on which requested number of the budget to raise, and for ε to what value."""
        name = self.budget.asked[0]
        return f"raise epsilon to {self.loss_scale * factor:.2g} or more" if name == "epsilon" else f"raise {name}"

    def _laplace_size(self) -> float:
        """Return the size at which Laplace noise meets the largest ε by basic composition."""
        rows = math.fsum(
            unit.split_bounds.most_rows / spend.noise_size for unit in self.groups for spend in unit.noise_specs
        )
        return rows / self.loss_scale

    def _size_excess(self, families: Sequence[NoiseFamily], size: float, resolution: int) -> float:
        weights = self._family_weights(families, size)
        return self._largest_excess(self._total_loss([law.shift_loss_cells for law in weights], size, resolution))

    def _total_loss(self, losses: Sequence[ShiftLoss], size: float, resolution: int) -> LossPMF:
        shifts = [need.shift for need in noise_requirements(self.groups, size, self.private_delta)]
        return total_loss(
            self.groups, losses, shifts, self.loss_lattice(size, resolution), fullest=self.only_fullest_split
        )

    def _keeps_points(self, total: LossPMF) -> bool:
        """Return whether a composed distribution meets every point, with the margin."""
        return self._largest_excess(total) <= 0

    def _largest_excess(self, total: LossPMF) -> float:
        """Return the largest log of δ over the allowed δ less the margin; at most 0 if every point is met."""
        found = [(total.infinite_mass, self.private_delta), *((total.delta(e), d) for e, d in self.private_points)]
        excesses = []
        for most, stated in found:
            allowed = stated * (1 - SAFETY)
            # The sign of each logarithm is that of the difference under any rounding.
            if most <= allowed:
                excesses.append(min(0.0, math.log(most / allowed)) if most > 0 else -math.inf)
            else:
                excesses.append(max(math.ulp(0.0), math.log(most / allowed)) if allowed > 0 else math.inf)
        return max(excesses)

    def _family_weights(self, families: Sequence[NoiseFamily], size: float) -> list[Law]:
        """Spends that are alike share one distribution."""

        @cache
        def law(family: NoiseFamily, relative_size: float, need: NoiseRequirement, dimension: int) -> Law:
            listed = family.float_weights(size * relative_size, need)
            return listed if dimension == 1 else BoxWeights.from_weights(listed, dimension)

        spends, wanted = all_noise_specs(self.groups), noise_requirements(self.groups, size, self.private_delta)
        return [law(f, s.noise_size, need, s.dimension) for f, s, need in zip(families, spends, wanted, strict=True)]

    def total_error(self, families: Sequence[NoiseFamily], size: float) -> float:
        """Sum over all numbers of E|X| in shifts of one row, each over the relative size that it was to have."""
        if not math.isfinite(size):
            return math.inf
        errors = []
        for law, spend, need in zip(
            self._family_weights(families, size),
            all_noise_specs(self.groups),
            noise_requirements(self.groups, size, self.private_delta),
            strict=True,
        ):
            # For stretched steps E|X + U₁ − U₂|: for each x this equals |x|, but 1/3 at x = 0.
            mean_absolute = law.mean_absolute + (0.0 if spend.whole_rows else law.zero_probability / 3)
            errors.append(mean_absolute / need.shift / spend.requested_size * spend.dimension)
        return math.fsum(errors)

    def certify_tables(
        self, families: Sequence[NoiseFamily], size: float
    ) -> tuple[tuple[tuple[SelectedNoise, ...], ...], PrivacyLoss, LossLattice]:
        """Return integer tables at the least size that passes on the fine lattice, with the loss of those tables."""
        size = least_size(
            lambda near: self._size_excess(families, near, FINE),
            size,
            width=ROUGH,
            within=CLOSE / 2,
            limits=(size / FINER, size * FINER),
        )
        tries = TABLES if math.isfinite(size) else 0
        for near in (size * (1 + CLOSE) ** i for i in range(tries)):
            tables = list(map(cache(lambda law: law.integer_table()), self._family_weights(families, near)))
            try:
                total = self._total_loss(list(map(cache(_exact_shift_loss), tables)), near, FINE)
            except InputError:  # a shift over more of an unbounded table than is listed: a larger size is flatter
                continue
            if self._keeps_points(total) and self._rounded_loss_keeps_points(loss := _symmetric_loss(total.to_atoms())):
                return self._selected_noise(families, tables, near), loss, total.window
        raise NoTableError(f"no integer table keeps {self.budget}; raise delta")

    def _rounded_loss_keeps_points(self, loss: PrivacyLoss) -> bool:
        """Return whether the recorded loss meets the points, rounding included: this matters for δ below 1e−11."""
        return all(float(loss.delta(epsilon)) <= delta for epsilon, delta in self.private_points)

    def _selected_noise(
        self, families: Sequence[NoiseFamily], tables: Sequence[AnyTable], size: float
    ) -> tuple[tuple[SelectedNoise, ...], ...]:
        chosen = iter(zip(families, tables, noise_requirements(self.groups, size, self.private_delta), strict=True))
        return tuple(
            tuple(
                SelectedNoise(spend, family.name, need.shift, table)
                for spend, (family, table, need) in zip(unit.noise_specs, chosen, strict=False)
            )
            for unit in self.groups
        )


def _exact_shift_loss(table: AnyTable) -> ShiftLoss:
    """Return the loss from the integer weights; possible rounding errors are added to each loss."""

    def exact_loss_cells(shift: int) -> LossCells:
        return table.atoms_for_shift(shift).raise_losses().loss_cells(0.0)

    return exact_loss_cells


def _symmetric_loss(law: Atoms) -> PrivacyLoss:
    """All noise here is symmetric, so adding and removing a person have the same distribution."""
    return PrivacyLoss.from_distribution(law, reverse=law, neighbors=Neighbors.ADD_REMOVE)


KEYS = TruncatedLaplaceFamily()
"""The family that hides keys when the selected family is unbounded or has too large a bound."""
CHOICES = LaplaceFamily()
"""The family as which exponential-mechanism selections are charged."""
SHAPE_WITHIN, MOST_SHAPES = 0.04, 5
"""Shapes of a family with two parameters: relative tolerance of the best, and the maximal number that is tried."""
SMALLER = (36.0, 32.0, 28.0, 24.0, 20.0, 16.0, 12.0, 8.0)
"""Replacements, tried in this order, for a larger ε that no integer table can be shown to meet."""
HOPELESS = 1.6
"""If Gaussian noise is this much larger than the best, families between Gaussian and Laplace are skipped."""


@dataclass(frozen=True, slots=True)
class NoiseAllocation:
    """The selected noise by unit and spend, the total loss, and each family's error relative to the selected one."""

    selections: tuple[tuple[SelectedNoise, ...], ...]
    loss: PrivacyLoss
    alternatives: dict[str, float]
    avoidable_noise: float | None = None
    """Upper bound on the fraction of noise added because splits are too many to enumerate; None if enumerated."""
    loss_lattice: LossLattice | None = None
    """The lattice on which the loss was composed; None for the lattice of a single table."""
    total_error: float = math.inf
    """Sum over all numbers of E|X| in shifts of one row, each over the relative size that it was to have."""
    families: tuple[NoiseFamily, ...] = ()
    """The family of each spend; empty if no size was searched."""
    family_name: str = ""
    """The joint name of the families."""
    normalized_size: float = math.inf
    """The common size times the largest ε of the budget: nearly the same for other budgets."""


def allocate_noise(
    units: Sequence[CompositionGroup], budget: Budget, *, compare: bool = True, like: NoiseAllocation | None = None
) -> NoiseAllocation:
    """Return the smallest noise for which the exact composed loss meets every point of the budget.

    One family for all spends (bounded ones keep a bounded family) at the least common size; the family with the
    least sum of E|X| over relative sizes wins. Every unit is dominated by the pointwise maximum over the ways one
    person's rows may fall; units compose with **parameters fixed in advance**. Neighbors: add or remove one person.
    ``compare=False`` skips families that are ``HOPELESS``: they are not among the alternatives then. ``like``, an
    allocation for another budget, restricts the search to its families: much faster. For δ = 0 noise must be unbounded,
    so keys cannot be hidden. Raises ``InsufficientBudgetError`` if no size meets the budget.

    ε above ``MOST_EPSILON`` is replaced by it. If no integer table can be shown to meet a large ε, the next smaller one
    in ``SMALLER`` replaces it: that meets the budget, and the certificate states the realized guarantee.
    """
    for most in (MOST_EPSILON, *SMALLER):
        search = NoiseSearch(tuple(units), budget, most)
        try:
            if not search.private_delta > 0 and any(spend.needs_bound for spend in all_noise_specs(search.groups)):
                raise InsufficientBudgetError(
                    "keys cannot be discovered at delta = 0: list them with keys=[...], or allow a delta such as 1e-12"
                )
            if like is not None and like.families:
                size = search.least_size(like.families, like.normalized_size / search.loss_scale)
                return _least_error_trial(
                    search,
                    [FamilyTrial(like.family_name, like.families, size, search.total_error(like.families, size))],
                )
            return _closed_form_optimum(search) or _least_error_trial(search, _family_trials(search, compare=compare))
        except NoTableError as error:
            refused = error
            if not max(epsilon for epsilon, _ in budget.rounded_points) > SMALLER[-1]:
                break
    raise refused


def _family_trials(search: NoiseSearch, *, compare: bool) -> list[FamilyTrial]:
    """Return a trial of each family; families with a shape come last and start near the others' results."""
    if all(spend.is_selection for spend in all_noise_specs(search.groups)):
        return [_size_family(search, CHOICES)]
    planned = [
        family
        for family in registered_families()
        if family.used_in_plans and (search.private_delta > 0 or not family.has_bound)
    ]
    trials: list[FamilyTrial] = []
    for law in (law for family in planned if not isinstance(family, ShapedFamily) for law in family.plan_variants):
        trials.append(_competing_trial(search, law, trials, compare=compare))
    return trials + [
        _best_shape_trial(search, family, trials) for family in planned if isinstance(family, ShapedFamily)
    ]


def _competing_trial(
    search: NoiseSearch, law: NoiseFamily, trials: Sequence[FamilyTrial], *, compare: bool
) -> FamilyTrial:
    """Return the trial of one family; without comparison, a hopeless family is not sized."""
    least = min((trial.size for trial in trials), default=math.inf)
    beaten = (
        not compare
        and math.isfinite(least)
        and not search.passes_coarsely(_families_by_spec(search, law), HOPELESS * least)
    )
    return _skipped_trial(law.name) if beaten else _size_family(search, law)


def _least_error_trial(search: NoiseSearch, trials: Sequence[FamilyTrial]) -> NoiseAllocation:
    """Return the trial with the least error, certified; the first one among nearly equal errors."""
    least = min(trial.total_error for trial in trials)
    if not math.isfinite(least):
        raise InsufficientBudgetError(
            f"no noise keeps {search.budget} for {len(search.groups)} answers; raise {' or '.join(search.budget.asked)}"
        )
    best = next(trial for trial in trials if trial.total_error <= least * (1 + 2 * ROUGH))
    choices, loss, window = search.certify_tables(best.families, best.size)
    ordered = sorted(trials, key=lambda trial: -trial.total_error)
    relative = {t.family_name: t.total_error / best.total_error for t in ordered if math.isfinite(t.total_error)}
    said = best.total_error, best.families, best.family_name, best.size * search.loss_scale
    # How much smaller noise could be, at most, if the bound on many rows were exact: the fullest split needs it.
    if all(unit.split_bounds.composes_every_split for unit in search.groups):
        spare = None
    else:
        needed = replace(search, only_fullest_split=True).least_size(best.families, best.size)
        spare = max(0.0, 1 - needed / best.size) if math.isfinite(needed) else 1.0
    return NoiseAllocation(choices, loss, relative, spare, window, *said)


def _closed_form_optimum(search: NoiseSearch) -> NoiseAllocation | None:
    """Return the closed form for one vector of counts with one row per person: it is optimal (theory §4.1)."""
    (spend, *others), (need, *_) = (
        all_noise_specs(search.groups),
        noise_requirements(search.groups, 1.0, search.private_delta),
    )
    capped = min(delta for _, delta in search.private_points) <= search.private_delta
    if others or not spend.whole_rows or need.part_rows != (1,) or not capped:
        return None
    try:
        table = optimal_table(search.private_points)
    except InputError:  # too long a table: the search rejects in words of the budget
        return None
    if spend.needs_bound and not math.isfinite(table.largest_magnitude):
        return None
    loss = _symmetric_loss(table.atoms_for_shift(1))
    choice = SelectedNoise(spend, "least noise (closed form)", 1, table)
    return NoiseAllocation(((choice,),), loss, {}, total_error=table.mean_absolute / spend.requested_size)


@dataclass(frozen=True, slots=True)
class FamilyTrial:
    """A family for every spend, the least common size that meets the budget, and the resulting error."""

    family_name: str
    families: tuple[NoiseFamily, ...]
    size: float
    total_error: float


def _skipped_trial(name: str) -> FamilyTrial:
    """Return the trial of a family without a size search."""
    return FamilyTrial(name, (), math.inf, math.inf)


def _best_shape_trial(search: NoiseSearch, family: ShapedFamily, trials: Sequence[FamilyTrial]) -> FamilyTrial:
    """Return the trial of the family's best shape; an error of ∞ if the family that it is ``near`` is hopeless."""
    least, beside = (
        min(trials, key=lambda trial: trial.total_error),
        {trial.family_name: trial.total_error for trial in trials},
    )
    if not beside.get(family.neighbor_family, least.total_error) < HOPELESS * least.total_error:
        return _skipped_trial(family.name)
    found: list[FamilyTrial] = []

    def shape_error(shape: float) -> float:
        guess = found[-1].size if found else least.size
        found.append(_size_family(search, family.with_shape(shape), guess))
        return found[-1].total_error

    scipy.optimize.minimize_scalar(
        shape_error,
        bounds=family.shape_bounds,
        method="bounded",
        options={"xatol": SHAPE_WITHIN, "maxiter": MOST_SHAPES},
    )
    return min(found, key=lambda trial: trial.total_error)


def _size_family(search: NoiseSearch, family: NoiseFamily, guess: float | None = None) -> FamilyTrial:
    families = _families_by_spec(search, family)
    size = search.least_size(families, guess)
    return FamilyTrial(family.name, families, size, search.total_error(families, size))


def _families_by_spec(search: NoiseSearch, family: NoiseFamily) -> tuple[NoiseFamily, ...]:
    """The family for every spend, one that hides keys where they are discovered; choices have their own."""
    hiding = family if family.hides_keys else KEYS
    return tuple(
        CHOICES if spend.is_selection else hiding if spend.needs_bound else family
        for spend in all_noise_specs(search.groups)
    )
