"""Least noise for several answers under one budget, from the numerically composed privacy profile.

All noise has one family and one common size, times the relative size of each statistic. A vector is the noise of one
statistic, a number per group; a unit (``CompositionGroup``) has the vectors that one person's rows change together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, Context
from functools import cache

import scipy
from scipy.special import ndtri

from tightrope.accounting.distributions.atoms import Atoms
from tightrope.accounting.distributions.gaussian import GaussianLossDistribution, gaussian_mu, gaussian_reach
from tightrope.accounting.loss_pmf import LossLattice, LossPMF
from tightrope.accounting.neighbors import Neighbors
from tightrope.accounting.privacy_loss import PrivacyLoss
from tightrope.display import Displayed, Rounded, Shown, Summary
from tightrope.documents.budget import Budget
from tightrope.errors import InputError, InsufficientBudgetError
from tightrope.mechanisms.discrete.box_table import AnyTable
from tightrope.mechanisms.discrete.integer_tables import optimal_table
from tightrope.noise.coarse_losses import CoarseLosses, certified_noise_loss
from tightrope.noise.families import (
    NORMAL_DEVIATION_RATIO,
    GaussianFamily,
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
    by_alternative,
    estimated_box_cells,
    largest_total,
    lattice_unit,
    linear_losses,
    noise_requirements,
    worst_split_loss,
)
from tightrope.numerics.progress import with_progress
from tightrope.numerics.root_finding import least_size

# 1. The search at one budget: the least common size for given families, and the resulting tables.

COARSE_POINTS, FINE_POINTS = 160, 640
"""Minimal number of lattice points up to the budget's ε: while searching, and for the certificate."""
WINDOW_REACH = 1.7
"""The lattice contains losses up to this many times ``loss_scale``; larger losses count as infinite."""
CERTIFICATE_MARGIN = 1e-9
"""Relative margin of the certificate over the rounding of its sums."""
ROUGH_TOLERANCE, FINAL_TOLERANCE = 2e-4, 2e-6
"""Relative tolerances of the least size: while families are compared, and for the selected one."""
MAX_TABLE_TRIALS = 100
"""Maximal number of integer tables that are tried, each a little larger than the one before."""
FINE_SIZE_FACTOR = 1.5
"""The least size on the fine lattice is searched within this factor of the size on the coarse one."""
MIN_SIZE, MAX_SIZE_FACTOR = 1e-3, 60
"""Range of sizes that are searched: from this many shifts of one row to this many times the size of Laplace noise."""
FIRST_WIDTH, NEXT_WIDTH = 0.3, 0.02
"""Difference in log of the first two sizes of a search: without a guess, and with one from a similar family."""
ROUND_UP_TWO_DIGITS = Context(prec=2, rounding=ROUND_CEILING)
MOST_EPSILON = 40.0
"""The largest ε for which noise is computed; budgets with a larger one get the same noise. It is negligible there, and
the total variation is 1 in double precision."""
MAX_NOISE_ROWS = 20_000
"""Plans whose answers would all need noise of more rows are rejected: useless answers, and too long tables."""
MAX_LATTICE_POINTS, MAX_COARSE_POINTS = 2000, 500
"""Maximal number of lattice points up to the budget's ε; while searching for persons with many rows."""

Weights = FloatWeights | BoxWeights


class NoTableError(InsufficientBudgetError):
    """Raised if the floating-point noise meets the budget, but no integer table can be certified to meet it."""


@dataclass(frozen=True, slots=True)
class NoiseSearch:
    """The search for the least noise with which these composition groups meet one budget."""

    groups: tuple[CompositionGroup, ...]
    budget: Budget
    epsilon_cap: float = MOST_EPSILON
    """A larger ε is replaced by this one: noise that meets the smaller one also meets the larger."""
    only_fullest_split: bool = False
    """If True, groups with too many splits to enumerate are composed for one split only: a lower bound on the noise."""

    @property
    def _groups_of_vectors(self) -> list[CompositionGroup]:
        """The composition group of each vector, in order."""
        return [group for group in self.groups for _ in group.noise_specs]

    @property
    def private_delta(self) -> float:
        """The stated δ, rounded to the private side."""
        return math.nextafter(float(self.budget.delta), 0.0)

    @property
    def adds_one_count(self) -> bool:
        """Whether a person adds one to one of these vectors of counts, all of one size, limited by the points alone."""
        specs = all_noise_specs(self.groups)
        sets = by_alternative(self.groups, [group.noise_specs for group in self.groups])
        is_one_vector = len(sets) == 1 and all(len(member) == len(member[0]) == 1 for member in sets[0])
        is_alike = all(spec.whole_rows and spec.eighths == specs[0].eighths and spec.dimension == 1 for spec in specs)
        requirement, *_ = noise_requirements(self.groups, 1.0, self.private_delta)
        # The stated δ limits the mass at infinity, which is at most the δ of every point.
        delta_is_implied = min(delta for _, delta in self.private_points) <= self.private_delta
        return is_one_vector and is_alike and requirement.part_rows == (1,) and delta_is_implied

    @property
    def usable_families(self) -> list[NoiseFamily]:
        """The families of noise that these groups can have at this budget."""
        bounds_splits = any(group.bounds_splits for group in self.groups)
        has_boxes = any(spec.dimension > 1 for spec in all_noise_specs(self.groups))
        return [
            family
            for family in registered_families()
            if family.used_in_plans
            and (self.private_delta > 0 or (family.fills_boxes if has_boxes else not family.has_bound))
            and (family.hides_many_rows or not bounds_splits)
        ]

    @property
    def private_points(self) -> list[tuple[float, float]]:
        """The budget's points as floats, rounded to the private side."""
        return [(min(e, self.epsilon_cap), math.nextafter(d, 0.0)) for e, d in self.budget.rounded_points]

    @property
    def loss_scale(self) -> float:
        """The scale of the losses: the largest ε of the budget, or more if losses above ε contribute to a large δ.

        For a total variation alone it is the ε that Gaussian noise would have.
        """
        scales = []
        for epsilon, delta in self.budget.rounded_points:
            if not epsilon:
                # ε at δ of the Gaussian with this total variation: the scale of losses where only η is requested.
                mu = 2 * float(ndtri((1 + delta) / 2))
                gaussian_loss = PrivacyLoss.from_distribution(GaussianLossDistribution(max(mu, 1e-6)))
                scales.append(max(gaussian_loss.epsilon(max(self.private_delta, 1e-300)), mu))
            else:
                # If δ is relatively large, losses far beyond ε contribute to δ with less than their whole mass.
                scales.append(max(epsilon, gaussian_reach(epsilon, delta) / WINDOW_REACH) if delta > 0 else epsilon)
        return min(self.epsilon_cap, max(scales))

    def loss_lattice(self, size: float, resolution: int) -> LossLattice:
        """Return a lattice on which the losses of Laplace-like noise of this size are points, unless it is too long."""
        exponential_step = 8 / (lattice_unit(self.groups, size) * size)
        most_points = MAX_LATTICE_POINTS
        if resolution < FINE_POINTS and any(group.bounds_splits for group in self.groups):
            most_points = MAX_COARSE_POINTS
        step = max(
            exponential_step / max(1, math.ceil(resolution * exponential_step / self.loss_scale)),
            self.loss_scale / most_points,
        )
        return LossLattice(step, math.ceil(WINDOW_REACH * self.loss_scale / step))

    def least_size(self, families: Sequence[NoiseFamily], guess: float | None = None) -> float:
        """Return the least common size that meets the budget on the coarse lattice; ∞ if all sizes fail.

        The relative tolerance is ``ROUGH_TOLERANCE``.
        """
        laplace_size = self._laplace_size()
        self._check_useful_noise(laplace_size)
        if not estimated_box_cells(self.groups, laplace_size, self.private_delta) <= MOST_BOX_CELLS:
            raise InsufficientBudgetError(
                "noise shared by several numbers would need too many losses; use separate noise"
            )
        limits = (min(MIN_SIZE, laplace_size), MAX_SIZE_FACTOR * laplace_size)
        start, width = (laplace_size, FIRST_WIDTH) if guess is None else (guess, NEXT_WIDTH)
        return least_size(
            lambda size: self._size_excess(families, size, COARSE_POINTS),
            start,
            width=width,
            within=ROUGH_TOLERANCE / 2,
            limits=limits,
        )

    def meets_budget_coarsely(self, families: Sequence[NoiseFamily], size: float) -> bool:
        """Return whether a size meets the budget, on the coarse lattice."""
        return self._size_excess(families, size, COARSE_POINTS) <= 0

    def _check_useful_noise(self, laplace_size: float) -> None:
        """Raise ``InsufficientBudgetError`` if the noise would be useless."""
        if laplace_size > MAX_NOISE_ROWS:
            about = f"about {laplace_size:.3g}" if math.isfinite(laplace_size) else "more than 1e308"
            raise InsufficientBudgetError(
                f"{self.budget} needs noise of {about} rows in each answer; {self._useful_noise_advice()}"
            )

    def _useful_noise_advice(self) -> str:
        """Return advice on which requested number of the budget to raise, and for ε to what value for this plan.

        That ε is rounded up. Above ``MOST_EPSILON`` the noise does not decrease: only a smaller plan can help.
        """
        epsilon = self._scaled_rows() / MAX_NOISE_ROWS
        if not epsilon <= MOST_EPSILON:
            return "no budget makes it small enough: ask fewer questions, or use fewer rows of each person"
        if self.budget.asked[0] != "epsilon":
            return f"raise {self.budget.asked[0]}, or ask fewer questions"
        least = ROUND_UP_TWO_DIGITS.create_decimal_from_float(epsilon)
        return f"raise epsilon to {least:g} or more for this plan, or ask fewer questions"

    def _scaled_rows(self) -> float:
        """Return the size of Laplace noise at ε = 1 by basic composition."""
        return largest_total(self.groups, linear_losses(self.groups))

    def _laplace_size(self) -> float:
        """Return the size at which Laplace noise meets the largest ε by basic composition; ∞ if it is no float."""
        scale = self.loss_scale
        return self._scaled_rows() / scale if scale > 0 else math.inf

    def _size_excess(self, families: Sequence[NoiseFamily], size: float, resolution: int) -> float:
        """Return the largest excess over the budget at this size; at most 0 if it meets the budget."""
        weights = self._family_weights(families, size)
        coarse_losses = cache(lambda one: None if isinstance(one, BoxWeights) else CoarseLosses.from_weights(one))
        losses: list[ShiftLoss] = []
        for vector_weights, group in zip(weights, self._groups_of_vectors, strict=True):
            coarse = coarse_losses(vector_weights) if group.bounds_splits else None
            losses.append(vector_weights.shift_loss_cells if coarse is None else coarse.loss_cells)
        return self._largest_excess(self._total_loss(losses, size, resolution))

    def _total_loss(self, losses: Sequence[ShiftLoss], size: float, resolution: int) -> LossPMF:
        shifts = [requirement.shift for requirement in noise_requirements(self.groups, size, self.private_delta)]
        return worst_split_loss(
            self.groups, losses, shifts, self.loss_lattice(size, resolution), fullest=self.only_fullest_split
        )

    def _largest_excess(self, total: LossPMF) -> float:
        """Return the largest log of δ divided by the allowed δ, less the margin; at most 0 if every point is met."""
        points = [
            (total.infinite_mass, self.private_delta),
            *((total.delta(epsilon), stated) for epsilon, stated in self.private_points),
        ]
        excesses = []
        for delta, stated in points:
            allowed = stated * (1 - CERTIFICATE_MARGIN)
            # The sign of each logarithm is that of the difference under any rounding.
            if delta <= allowed:
                excesses.append(min(0.0, math.log(delta / allowed)) if delta > 0 else -math.inf)
            else:
                excesses.append(max(math.ulp(0.0), math.log(delta / allowed)) if allowed > 0 else math.inf)
        return max(excesses)

    def _family_weights(self, families: Sequence[NoiseFamily], size: float) -> list[Weights]:
        """Return the weights of each vector's noise; equal vectors share one object."""

        @cache
        def build_weights(
            family: NoiseFamily, relative_size: float, requirement: NoiseRequirement, dimension: int
        ) -> Weights:
            weights = family.float_weights(size * relative_size, requirement)
            if dimension == 1:
                return weights
            return BoxWeights.from_weights(weights, dimension, bounded=requirement.infinite_mass > 0)

        specs, requirements = all_noise_specs(self.groups), noise_requirements(self.groups, size, self.private_delta)
        return [
            build_weights(family, spec.noise_size, requirement, spec.dimension)
            for family, spec, requirement in zip(families, specs, requirements, strict=True)
        ]

    def total_error(self, families: Sequence[NoiseFamily], size: float) -> float:
        """Return the sum over all numbers of E|X|, in shifts of one row, divided by the requested relative size."""
        if not math.isfinite(size):
            return math.inf
        errors = []
        for weights, spec, requirement in zip(
            self._family_weights(families, size),
            all_noise_specs(self.groups),
            noise_requirements(self.groups, size, self.private_delta),
            strict=True,
        ):
            # Noise for real-valued sums is a table stretched to a scale (``scaled_noise``): in units of that scale,
            # Y + U₁ − U₂ with Y from the table. Its mean absolute value given Y = x is |x|, but 1/3 for x = 0.
            mean_absolute = weights.mean_absolute + (0.0 if spec.whole_rows else weights.zero_probability / 3)
            errors.append(mean_absolute / requirement.shift / spec.requested_size * spec.dimension)
        return math.fsum(errors)

    def certify_tables(
        self, families: Sequence[NoiseFamily], size: float
    ) -> tuple[tuple[tuple[SelectedNoise, ...], ...], PrivacyLoss, LossLattice]:
        """Return the tables at the least size that meets the budget on the fine lattice, their loss and the lattice."""
        size = least_size(
            lambda trial_size: self._size_excess(families, trial_size, FINE_POINTS),
            size,
            width=ROUGH_TOLERANCE,
            within=FINAL_TOLERANCE / 2,
            limits=(size / FINE_SIZE_FACTOR, size * FINE_SIZE_FACTOR),
        )

        trials = MAX_TABLE_TRIALS if math.isfinite(size) else 0
        for trial_size in (size * (1 + FINAL_TOLERANCE) ** i for i in range(trials)):
            tables = list(
                map(cache(lambda weights: weights.integer_table()), self._family_weights(families, trial_size))
            )
            try:
                certified = cache(certified_noise_loss)
                losses = [
                    certified(table, group.bounds_splits)
                    for table, group in zip(tables, self._groups_of_vectors, strict=True)
                ]
                total = self._total_loss(losses, trial_size, FINE_POINTS)
            except InputError:  # a shift beyond the listed part of an unbounded table: larger sizes list more
                continue
            if self._largest_excess(total) > 0:
                continue
            loss = _symmetric_loss(total.to_atoms())
            # the loss of the whole table rounds its points once more
            if all(float(loss.delta(epsilon)) <= delta for epsilon, delta in self.private_points):
                return self._selected_noise(families, tables, trial_size), loss, total.window
        raise NoTableError(f"no integer table meets {self.budget}; use a larger delta")

    def _selected_noise(
        self, families: Sequence[NoiseFamily], tables: Sequence[AnyTable], size: float
    ) -> tuple[tuple[SelectedNoise, ...], ...]:
        chosen = iter(zip(families, tables, noise_requirements(self.groups, size, self.private_delta), strict=True))
        return tuple(
            tuple(
                SelectedNoise(spec, family.name, requirement.shift, table)
                for spec, (family, table, requirement) in zip(group.noise_specs, chosen, strict=False)
            )
            for group in self.groups
        )


def _symmetric_loss(atoms: Atoms) -> PrivacyLoss:
    """Return the loss of symmetric noise: adding and removing a person have the same distribution."""
    return PrivacyLoss.from_distribution(atoms, reverse=atoms, neighbors=Neighbors.ADD_REMOVE)


# 2. The allocation: the family with the least error, certified.

KEY_FAMILY = TruncatedLaplaceFamily()
"""The family for discovered keys if the selected family is unbounded or has too large a bound."""
GAUSSIAN_FAMILY = GaussianFamily()
TINY_EPSILON = 1e-9
"""The ε of a total variation, for a formula that needs ε > 0."""
SELECTION_FAMILY = LaplaceFamily()
"""Selections by the exponential mechanism are charged as noise of this family."""
SHAPE_TOLERANCE, MAX_SHAPES = 0.04, 5
"""For families with a shape: the tolerance of the best shape, and the maximal number of shapes that are tried."""
SMALLER_EPSILONS = (36.0, 32.0, 28.0, 24.0, 20.0, 16.0, 12.0, 8.0)
"""Replacements, tried in this order, for a larger ε that no integer table can be shown to meet."""
MAX_AVOIDABLE_NOISE = 0.01
"""If one bound for all splits may increase the noise by more than this, they are enumerated where possible."""
SKIP_RATIO = 1.6
"""Families that need this many times the size of the best one so far are skipped (see ``allocate_noise``)."""


@dataclass(frozen=True, slots=True, repr=False)
class NoiseAllocation(Displayed):
    """The selected noise by composition group and vector, the total loss, and the other families' relative errors."""

    selections: tuple[tuple[SelectedNoise, ...], ...]
    loss: PrivacyLoss
    alternatives: dict[str, float]
    """The error of each family, and of other arrangements, divided by that of the selected one."""
    avoidable_noise: float | None = None
    """Upper bound on the fraction of the noise that could be saved if all splits were enumerated; None if they were."""
    loss_lattice: LossLattice | None = None
    """The lattice on which the loss was composed; None for the lattice of a single table."""
    bounds_splits: bool = False
    """True if the loss was composed for ``CompositionGroup.with_fast_bound`` of each group."""
    total_error: float = math.inf
    """Sum over all numbers of E|X|, in shifts of one row, divided by the requested relative size."""
    families: tuple[NoiseFamily, ...] = ()
    """The family of each vector; empty if no size was searched."""
    family_name: str = ""
    """The joint name of the families."""
    normalized_size: float = math.inf
    """The common size times the largest ε of the budget: divided by another ε, a first guess of the size for it."""

    def text_summary(self) -> Summary:
        """Return the noise of each vector."""
        rows: list[tuple[Shown, ...]] = [
            (selected.noise_spec.statistic, selected.family_name, Rounded(selected.table.mean_absolute, "up"))
            for group in self.selections
            for selected in group
        ]
        return Summary(self.family_name, (), ("statistic", "noise", "expected absolute error in steps"), rows)


def allocate_noise(
    groups: Sequence[CompositionGroup], budget: Budget, *, compare: bool = True, like: NoiseAllocation | None = None
) -> NoiseAllocation:
    """Return the smallest noise for which the exact composed loss meets every point of the budget.

    All vectors get the same family at the least common size; vectors that need bounded noise get a bounded family. The
    selected family has the least sum of E|X| divided by the relative sizes. The privacy profile of a group is bounded
    by the pointwise maximum over all splits of one person's rows; groups compose with **parameters fixed in advance**.
    Neighbors: add or remove one person.

    - ``compare=False`` skips families that need ``SKIP_RATIO`` times the size of another one: they are then missing
      in ``alternatives``.
    - ``like``, an allocation for another budget, restricts the search to its families: much faster.

    Noise for δ = 0 is unbounded, so it cannot be combined with discovered keys. Raises ``InsufficientBudgetError`` if
    no size meets the budget. ε above ``MOST_EPSILON`` is replaced by it. If no integer table can be shown to meet a
    large ε, the next smaller one in ``SMALLER_EPSILONS`` replaces it; the certificate states the realized guarantee.
    """
    groups = tuple(groups)
    fast_groups = tuple(group.with_fast_bound() for group in groups)
    if fast_groups == groups:
        return _allocate_groups(groups, budget, compare=compare, like=like)
    can_enumerate = all(group.composes_every_split for group in groups)
    try:
        fast = _allocate_groups(fast_groups, budget, compare=compare, like=like)
    except InsufficientBudgetError:
        if not can_enumerate:
            raise
        return _allocate_groups(groups, budget, compare=compare, like=like)
    if not can_enumerate or (fast.avoidable_noise or 0.0) <= MAX_AVOIDABLE_NOISE:
        return replace(fast, bounds_splits=True)
    # The families were compared with the simpler bound.
    enumerated = _allocate_groups(groups, budget, compare=compare, like=fast)
    return replace(enumerated, alternatives=fast.alternatives)


def gaussian_guess(groups: Sequence[CompositionGroup], budget: Budget) -> NoiseAllocation:
    """Return the family and the estimated size of Gaussian noise for groups of counts and δ > 0, as ``like``.

    It has no tables, and its loss is that of real-valued noise: the size still has to be searched and certified.
    """
    search = NoiseSearch(tuple(groups), budget)
    mu = min(gaussian_mu(max(epsilon, TINY_EPSILON), delta) for epsilon, delta in search.private_points if delta > 0)
    squares = math.fsum(
        group.split_bounds.most_rows * group.split_bounds.largest_part / spec.noise_size**2
        for group in groups
        for spec in group.noise_specs
    )
    loss = PrivacyLoss.from_distribution(GaussianLossDistribution(mu))
    size = math.sqrt(squares) / mu / NORMAL_DEVIATION_RATIO
    families = _families_by_spec(search, GAUSSIAN_FAMILY)
    return NoiseAllocation(
        (), loss, {}, families=families, family_name=GAUSSIAN_FAMILY.name, normalized_size=size * search.loss_scale
    )


def _allocate_groups(
    groups: tuple[CompositionGroup, ...], budget: Budget, *, compare: bool, like: NoiseAllocation | None
) -> NoiseAllocation:
    """Return the smallest noise for these groups, with their own ``bounds_splits``."""
    for epsilon_cap in (MOST_EPSILON, *SMALLER_EPSILONS):
        search = NoiseSearch(groups, budget, epsilon_cap)
        try:
            if not search.private_delta > 0 and any(spec.needs_bound for spec in all_noise_specs(search.groups)):
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
            last_error = error
            if not max(epsilon for epsilon, _ in budget.rounded_points) > SMALLER_EPSILONS[-1]:
                break
    raise last_error


def _family_trials(search: NoiseSearch, *, compare: bool) -> list[FamilyTrial]:
    """Return a trial of each family; families with a shape come last and start near the others' results."""
    if all(spec.is_selection for spec in all_noise_specs(search.groups)):
        return [_size_family(search, SELECTION_FAMILY)]
    trials: list[FamilyTrial] = []
    shaped = [family for family in search.usable_families if isinstance(family, ShapedFamily)]
    variants = [v for family in search.usable_families if family not in shaped for v in family.plan_variants]
    # After the families, the selected one is certified.
    for variant in with_progress(variants, after=len(shaped) + 1):
        # Without ``compare`` the size of a family that is clearly worse is not searched.
        least = min((trial.size for trial in trials), default=math.inf)
        is_skipped = (
            not compare
            and math.isfinite(least)
            and not search.meets_budget_coarsely(_families_by_spec(search, variant), SKIP_RATIO * least)
        )
        trials.append(FamilyTrial(variant.name) if is_skipped else _size_family(search, variant))
    return trials + [
        _best_shape_trial(search, family, trials) for family in with_progress(shaped, before=len(variants), after=1)
    ]


def _least_error_trial(search: NoiseSearch, trials: Sequence[FamilyTrial]) -> NoiseAllocation:
    """Return the certified allocation of the trial with the least error (if nearly equal, of the first of them)."""
    least = min(trial.total_error for trial in trials)
    if not math.isfinite(least):
        raise InsufficientBudgetError(
            f"no noise meets {search.budget} for {len(search.groups)} answers; "
            f"use a larger {' or '.join(search.budget.asked)}"
        )
    best = next(trial for trial in trials if trial.total_error <= least * (1 + 2 * ROUGH_TOLERANCE))
    selections, loss, window = search.certify_tables(best.families, best.size)
    by_error = sorted(trials, key=lambda trial: -trial.total_error)
    relative = {t.family_name: t.total_error / best.total_error for t in by_error if math.isfinite(t.total_error)}
    # How much smaller the noise could be if all splits were enumerated: the fullest split alone needs this size.
    if all(group.composes_every_split for group in search.groups):
        avoidable_noise = None
    else:
        lower_bound = replace(search, only_fullest_split=True).least_size(best.families, best.size)
        avoidable_noise = max(0.0, 1 - lower_bound / best.size) if math.isfinite(lower_bound) else 1.0
    return NoiseAllocation(
        selections,
        loss,
        alternatives=relative,
        avoidable_noise=avoidable_noise,
        loss_lattice=window,
        total_error=best.total_error,
        families=best.families,
        family_name=best.family_name,
        normalized_size=best.size * search.loss_scale,
    )


def _closed_form_optimum(search: NoiseSearch) -> NoiseAllocation | None:
    """Return the closed form for one vector of counts with one row per person: it is optimal (theory §4.1).

    Also for several of which a row enters one: each has the noise that it would have alone.
    """
    if not search.adds_one_count:
        return None
    specs = all_noise_specs(search.groups)
    try:
        table = optimal_table(search.private_points)
    except InputError:  # too long a table: the search raises an error in terms of the budget
        return None
    if any(one.needs_bound for one in specs) and not math.isfinite(table.largest_magnitude):
        return None
    loss = _symmetric_loss(table.atoms_for_shift(1))
    selections = tuple((SelectedNoise(one, "least noise (closed form)", 1, table),) for one in specs)
    error = math.fsum(table.mean_absolute / one.requested_size for one in specs)
    return NoiseAllocation(selections, loss, {}, total_error=error)


@dataclass(frozen=True, slots=True)
class FamilyTrial:
    """A family for every vector, the least common size that meets the budget, and the resulting error; ∞ if skipped."""

    family_name: str
    families: tuple[NoiseFamily, ...] = ()
    size: float = math.inf
    total_error: float = math.inf


def _best_shape_trial(search: NoiseSearch, family: ShapedFamily, trials: Sequence[FamilyTrial]) -> FamilyTrial:
    """Return the trial of the family's best shape; its error is ∞ if ``neighbor_family`` is skipped."""
    least = min(trials, key=lambda trial: trial.total_error)
    errors = {trial.family_name: trial.total_error for trial in trials}
    if not errors.get(family.neighbor_family, least.total_error) < SKIP_RATIO * least.total_error:
        return FamilyTrial(family.name)
    shape_trials: list[FamilyTrial] = []

    def shape_error(shape: float) -> float:
        guess = shape_trials[-1].size if shape_trials else least.size
        shape_trials.append(_size_family(search, family.with_shape(shape), guess))
        return shape_trials[-1].total_error

    scipy.optimize.minimize_scalar(
        shape_error,
        bounds=family.shape_bounds,
        method="bounded",
        options={"xatol": SHAPE_TOLERANCE, "maxiter": MAX_SHAPES},
    )
    return min(shape_trials, key=lambda trial: trial.total_error)


def _size_family(search: NoiseSearch, family: NoiseFamily, guess: float | None = None) -> FamilyTrial:
    """Return the family at its least size."""
    families = _families_by_spec(search, family)
    size = search.least_size(families, guess)
    return FamilyTrial(family.name, families, size, search.total_error(families, size))


def _families_by_spec(search: NoiseSearch, family: NoiseFamily) -> tuple[NoiseFamily, ...]:
    """Return the family of every vector: a bounded one for discovered keys, Laplace for exponential mechanisms."""
    family_for_keys = family if family.hides_keys else KEY_FAMILY
    return tuple(
        SELECTION_FAMILY if spec.is_selection else family_for_keys if spec.needs_bound else family
        for spec in all_noise_specs(search.groups)
    )
