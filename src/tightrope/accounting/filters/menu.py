"""F1, F2 and F6: losses declared beforehand: tokens, and an adaptive choice from a menu for a fixed number of steps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from tightrope.accounting.distributions.atoms import Atoms
from tightrope.accounting.distributions.composition import Composition
from tightrope.accounting.filters.filter import DominatedFilter, require_privacy_loss
from tightrope.accounting.filters.moments import log_moments
from tightrope.accounting.loss_pmf import LossLattice, LossPMF
from tightrope.accounting.methods.lattice_method import common_loss_step
from tightrope.accounting.neighbors import Neighbors
from tightrope.accounting.privacy_loss import PrivacyLoss
from tightrope.errors import InputError, InsufficientBudgetError
from tightrope.numerics.arrays import Floats
from tightrope.numerics.checks import check_integer, check_positive
from tightrope.numerics.rounding import ROUND_OFF

WINDOW_POINTS = 1 << 13
"""Number of lattice points of the window, unless a step is given."""
CHERNOFF_ORDERS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
ESCAPE_NATS = 70.0
"""The summed loss leaves the window with probability at most e^{−70}; then it counts as infinite."""
MAX_REACH = 300.0
"""Largest reach of a window; larger losses count as infinite: e^{−loss} must stay in double precision."""


@dataclass(frozen=True, slots=True, eq=False)
class WorstProfile:
    """Upper bounds on δ at the losses 0, step, 2·step, …; the last one also holds beyond. ``slack`` as for atoms."""

    values: Floats
    step: float
    slack: float


def worst_profile(menu: Sequence[Composition], steps: int, window: LossLattice) -> WorstProfile:
    """Return the profile of the worst adaptive choice of ``steps`` from the menu, in one direction.

    D_k(ε) = max_o E_o[D_{k−1}(ε − L_o)] on a lattice (theory §2). D is convex in γ = e^ε, so its chords between lattice
    points lie above it, and moving a menu entry onto the lattice along chords only raises E[D(ε − L)]. All sums have
    positive terms: the values keep their relative accuracy and are rounded up. Proofs: ``docs/proofs/filters.md``.
    """
    options = []
    for entry in menu:  # an entry that is a composition is composed on the lattice
        total = LossPMF.zero_loss(window)
        for law, count in zip(entry.laws, entry.counts, strict=True):
            total = total * LossPMF.from_cells(law.loss_cells(window.step), window) ** count
        options.append(total)
    values = -np.expm1(np.minimum(window.lattice_losses, 0.0))
    for _ in range(steps):
        values = np.max([_expected_delta(option, values) for option in options], axis=0)
    sums = steps * (1 + max(sum(option.counts) for option in menu)) + 2
    raised = np.minimum(values * (1 + sums * (len(values) + 64) * 2 * ROUND_OFF), 1.0)
    slack = max(option.slack for option in options) + 4 * ROUND_OFF * window.step * window.reach
    return WorstProfile(raised[window.reach :], window.step, steps * slack)


def _expected_delta(option: LossPMF, values: Floats) -> Floats:
    """Return δ_∞ + Σ_j p_j D(ε_i − l_j) at every i.

    Below the window D is at most the chord from (γ = 0, 1) to its first point, above it at most its value at the top.
    """
    first, last = min(0, option.first), max(0, option.end_index - 1)
    below = 1 - (1 - values[0]) * np.exp(option.window.step * np.arange(-last, 0))
    padded = np.concatenate([below, values, np.full(-first, values[-1])])
    masses = np.pad(option.values, (option.first - first, last + 1 - option.end_index))
    return np.asarray(option.infinite_mass + np.convolve(padded, masses, "valid"))


def window_for(menu: Sequence[Composition], steps: int, step: float | None) -> LossLattice:
    """Return a window for the sum of all steps, or for all but e^{−70} of it; ``step`` nats, or the atoms' lattice."""
    moments = np.max([log_moments(option, CHERNOFF_ORDERS).values for option in menu], axis=0)
    chernoff = float(np.min((steps * moments + ESCAPE_NATS) / np.array(CHERNOFF_ORDERS)))
    largest = max(0.0, *(option.largest_loss for option in menu))
    reach = min(steps * largest, chernoff, MAX_REACH)
    width = step
    if not width:
        # At most this width, on the lattice of the menu's atoms if they have one; finer than that lattice, because
        # the entries' profiles may cross between its points.
        width = max(2 * reach / WINDOW_POINTS, 1e-9)
        atoms = [law.losses for option in menu for law in option.laws if isinstance(law, Atoms)]
        common = common_loss_step(atoms) if atoms else None
        if common is not None and common >= width:
            width = common / math.ceil(common / width)
    # Moving onto the lattice can cost each step one more lattice point.
    points = math.ceil(reach / width)
    return LossLattice(width, min(points + min(steps, points) + 1, math.ceil(MAX_REACH / width)))


SMALLEST_DELTA = 1e-150
"""Positive values of δ below this are raised to it."""


def direction_pair(remove: WorstProfile, add: WorstProfile) -> tuple[Atoms, Atoms]:
    """Return the distributions of both directions; a single one if both bounds are the same object.

    Positive losses come from the profile of one direction; negative ones from the other, under Q. Masses are enlarged
    until the profile of the pair is at least the bounds everywhere, rounding included (``docs/proofs/filters.md``).
    """
    (up, infinite), (down, opposite) = _masses_from_bound(remove), _masses_from_bound(add)
    up_variation = _masses_total_variation(up, infinite, remove.step)
    down_variation = _masses_total_variation(down, opposite, remove.step)
    # Both are upper bounds on one total variation: the smaller one is raised, by mass at the smallest positive loss.
    up[0] += max(0.0, down_variation - up_variation) / -math.expm1(-remove.step)
    down[0] += max(0.0, up_variation - down_variation) / -math.expm1(-remove.step)
    total_variation = max(up_variation, down_variation)
    losses = np.asarray(remove.step * np.arange(1, len(up) + 1), dtype=np.float64)
    slack = max(remove.slack, add.slack)
    forward = _symmetric_distribution(losses, (up, down), (infinite, opposite), total_variation, slack)
    if remove is add:
        return forward, forward
    return forward, _symmetric_distribution(losses, (down, up), (opposite, infinite), total_variation, slack)


def _symmetric_distribution(
    losses: Floats,
    masses: tuple[Floats, Floats],
    infinite_masses: tuple[float, float],
    total_variation: float,
    slack: float,
) -> Atoms:
    """Return the distribution with these masses at the losses and at their negatives, and the rest at 0.

    If Q adds up to 1 + c, the profile may be too low by c·γ at γ = e^ε < 1, where δ is at least the total variation:
    growing all masses by 2c/TV compensates for it.
    """
    (up, down), (infinite, opposite) = masses, infinite_masses
    mirrored = down * np.exp(-losses)
    center = max(0.0, 1 - math.fsum([infinite, *up, *mirrored]))
    under_q = math.fsum([opposite, center, *down, *(up * np.exp(-losses))])
    excess = max(0.0, under_q - 1) + 16 * ROUND_OFF
    factor = 1 + 2 * excess / total_variation if total_variation > 0 else 1.0
    return Atoms.merge_losses(
        np.concatenate([-losses, [0.0], losses]),
        np.minimum(np.concatenate([mirrored, [center], up]) * factor, 1.0),
        infinite_mass=min(1.0, infinite * factor),
        reverse_infinity_mass=min(1.0, opposite * factor),
        rounding_error_bound=slack,
    )


def _masses_from_bound(bound: WorstProfile) -> tuple[Floats, float]:
    """Return masses at h, 2h, … and at +∞ whose profile reaches the bound.

    P_j = γ_j · (jump of the profile's slope in γ at γ_j).
    """
    values = bound.values
    infinite = float(np.max(values[values < SMALLEST_DELTA], initial=values[-1]))
    infinite = max(infinite, SMALLEST_DELTA) if infinite > 0 else 0.0
    values = np.maximum(values, infinite)
    rise = np.append(-np.diff(values), 0.0)
    masses = rise[:-1] / -math.expm1(-bound.step) - rise[1:] / math.expm1(bound.step)
    masses = np.where(masses > 16 * ROUND_OFF / bound.step * values[:-1], masses, 0.0)  # drop rounding
    is_finite = values > infinite
    # δ at 0, h, …: δ(γ_i) = δ(γ_{i+1}) + (γ_{i+1} − γ_i) Q(L > l_i), only positive terms.
    losses = bound.step * np.arange(len(masses) + 1)
    under_q = np.append(np.cumsum((masses * np.exp(-losses[1:]))[::-1])[::-1], 0.0)
    gains = math.expm1(bound.step) * np.exp(losses) * under_q
    profile = np.asarray(infinite + np.cumsum(gains[::-1])[::-1])[is_finite]
    factor = float(np.max(values[is_finite] / profile, initial=1.0)) * (1 + 8 * len(values) * ROUND_OFF)
    return masses * factor, min(1.0, infinite * factor)


def _masses_total_variation(masses: Floats, infinite: float, step: float) -> float:
    """Return the total variation of these masses: δ(0)."""
    gains = -np.expm1(-step * np.arange(1, len(masses) + 1))
    return math.fsum([infinite, *(masses * gains)])


def check_menu_losses(name: str, losses: object) -> list[PrivacyLoss]:
    """Return the losses of a non-empty list, all of one relation; raises ``InputError`` otherwise."""
    if not isinstance(losses, (list, tuple)) or not losses:
        raise InputError(name, losses, "a list of at least one PrivacyLoss", "such as [tr.laplace(scale=1).loss]")
    privacy_losses = [require_privacy_loss(name, loss) for loss in losses]
    common_relation(privacy_losses)
    return privacy_losses


def common_relation(losses: Sequence[PrivacyLoss]) -> Neighbors:
    """Return the neighboring relation of all these losses; ``InputError`` if they differ, or their group sizes."""
    common, size = Neighbors.UNSPECIFIED, 1
    for loss in losses:
        size = common.common_group_size(size, loss.neighbors, loss.group_size)
        common = common.with_other(loss.neighbors)
    return common


def equal_loss_index(loss: PrivacyLoss, among: Sequence[PrivacyLoss]) -> int | None:
    """Return the index of an equal loss; None if not found."""
    return next((i for i, other in enumerate(among) if equal_losses(loss, other)), None)


def equal_losses(one: PrivacyLoss, other: PrivacyLoss) -> bool:
    """Return whether both directions have equal distributions and counts, in the same order."""
    return one is other or (_same_composition(one.remove, other.remove) and _same_composition(one.add, other.add))


def _same_composition(one: Composition, other: Composition) -> bool:
    if one.counts != other.counts:
        return False
    for law, other_law in zip(one.laws, other.laws, strict=True):
        if law == other_law:
            continue
        if not (isinstance(law, Atoms) and isinstance(other_law, Atoms)):
            return False
        numbers = {(a.infinite_mass, a.reverse_infinity_mass, a.rounding_error_bound) for a in (law, other_law)}
        arrays = np.array_equal(law.losses, other_law.losses) and np.array_equal(law.masses, other_law.masses)
        if len(numbers) != 1 or not arrays:
            return False
    return True


MAX_MENU_STEPS = 1000
"""Largest number of steps of the dynamic program of F2."""
MAX_LATTICE_STEP = 50.0
"""Largest lattice step in nats; coarser ones give trivial bounds."""


class MenuBoundFilter(DominatedFilter[None]):
    """Up to ``steps`` charges, each for a loss of the menu."""

    def __init__(self, menu: Sequence[PrivacyLoss], *, steps: int, step: float | None = None) -> None:
        self._menu = check_menu_losses("menu", menu)
        self._steps = check_integer("steps", steps, remedy="how many mechanisms may run at most?")
        self._step = None if step is None else check_positive("step", step, "the lattice step in nats; None chooses it")
        if not (self._step or 0) <= MAX_LATTICE_STEP:
            raise InputError(
                "step", step, f"at most {MAX_LATTICE_STEP} nats", "smaller is tighter; None selects a step"
            )
        self._left = self._steps
        super().__init__(common_relation(self._menu))

    @property
    def statement(self) -> str:
        return (
            f"parameters may be chosen adaptively from a declared menu of {len(self._menu)} losses, at most "
            f"{self._steps} times, stopping at any time: delta(epsilon) is that of the worst adaptive choice"
        )

    def _charge_cost(self, loss: PrivacyLoss) -> None:
        if equal_loss_index(loss, self._menu) is None:
            raise InsufficientBudgetError(
                f"this loss is not one of the {len(self._menu)} on the declared menu; declare it beforehand, or charge "
                f"a MomentFilter, which takes any loss"
            )

    def _refusal_reason(self, cost: None) -> str:
        del cost
        return "" if self._left else f"all {self._steps} steps are taken; declare more steps beforehand, or stop"

    def _spend_cost(self, cost: None) -> None:
        del cost
        self._left -= 1

    def _worst_choice(self, steps: int) -> PrivacyLoss:
        """Return both directions of the worst adaptive choice; a single one if all entries are their own reverse."""
        removals, additions = [loss.remove for loss in self._menu], [loss.add for loss in self._menu]
        window = window_for([*removals, *additions], steps, self._step)
        remove = worst_profile(removals, steps, window)
        symmetric = all(
            loss.remove.laws == loss.add.laws and loss.remove.counts == loss.add.counts for loss in self._menu
        )
        add = remove if symmetric else worst_profile(additions, steps, window)
        law, reverse = direction_pair(remove, add)
        return PrivacyLoss.from_distribution(law, reverse=reverse, neighbors=common_relation(self._menu))


@final
class MenuFilter(MenuBoundFilter):
    """The worst adaptive choice of at most ``steps`` losses from a menu (theory §2, F2).

    D_k(ε) = max_o E_o[D_{k−1}(ε − L_o)], D_0(ε) = (1 − e^ε)₊, per direction: valid, and tight – some adaptive choice
    attains it. Computed on a lattice of ``step`` nats (default: the lattice of the menu's atoms, refined) and rounded
    up; exact if all losses lie on the lattice, otherwise of order k·step² above. At most 1000 steps;
    ``EnvelopeFilter`` has no such limit. Neighbors: as in the menu. Raises ``InputError`` for an empty menu,
    losses of different relations, or steps out of range.

    For these two, choosing adaptively is worse than every choice made beforehand:

    >>> from tightrope import approx_dp
    >>> menu = [approx_dp(1, total_variation=0.02).loss, approx_dp(0.2).loss]
    >>> fixed = [(j * menu[0] + (3 - j) * menu[1]).delta(1.2) for j in range(4)]
    >>> round(max(fixed), 6), round(MenuFilter(menu, steps=3).delta(1.2), 6)
    (0.001734, 0.002465)
    """

    def __init__(self, menu: Sequence[PrivacyLoss], *, steps: int, step: float | None = None) -> None:
        super().__init__(menu, steps=steps, step=step)
        if not self._steps <= MAX_MENU_STEPS:
            raise InputError("steps", steps, f"at most {MAX_MENU_STEPS}", "EnvelopeFilter takes any number of steps")

    @cached_property
    def loss(self) -> PrivacyLoss:
        return self._worst_choice(self._steps)


@final
class EnvelopeFilter(MenuBoundFilter):
    """``steps`` copies of one pair that dominates every loss of the menu (theory §2, F6).

    Its profile is the pointwise maximum of the menu's at lattice points ``step`` nats apart, rounded up. Never below
    ``MenuFilter``, equal if one loss dominates all others (noise scales of one family); cheap for many steps.
    Neighbors and errors as for ``MenuFilter``.

    >>> from tightrope import approx_dp
    >>> menu = [approx_dp(1, total_variation=0.02).loss, approx_dp(0.2).loss]
    >>> filter = EnvelopeFilter(menu, steps=3)
    >>> filter.charge(menu[1])
    >>> filter.delta(1.2) > MenuFilter(menu, steps=3).delta(1.2)
    True
    """

    @cached_property
    def loss(self) -> PrivacyLoss:
        return self._steps * self._worst_choice(1)


@final
class TokenFilter(DominatedFilter[int]):
    """Tokens declared beforehand, each spent at most once, in any adaptively chosen order, stopping at any time.

    δ(ε) equals the δ(ε) of the fixed composition of all tokens (theory §2, F1; ``docs/proofs/filters.md``): a declared
    plan may be executed in any order and abandoned. ``tokens`` may repeat a loss: ``3 * [loss]``. Neighbors: as in the
    tokens. Raises ``InputError`` for an empty list, or for losses of different relations.

    >>> from tightrope import approx_dp
    >>> strong, weak = approx_dp(1).loss, approx_dp(0.1).loss
    >>> filter = TokenFilter([strong, weak, weak])
    >>> filter.charge(weak)
    >>> filter.charge(strong)
    >>> filter.admits(strong), filter.admits(weak)
    (False, True)
    >>> filter.delta(0.5) == (strong + 2 * weak).delta(0.5)
    True
    """

    def __init__(self, tokens: Sequence[PrivacyLoss]) -> None:
        self._kinds: list[PrivacyLoss] = []
        self._counts: list[int] = []
        for token in check_menu_losses("tokens", tokens):
            kind = equal_loss_index(token, self._kinds)
            if kind is None:
                self._kinds.append(token)
                self._counts.append(1)
            else:
                self._counts[kind] += 1
        self._left = list(self._counts)
        super().__init__(common_relation(self._kinds))

    @cached_property
    def loss(self) -> PrivacyLoss:
        """The fixed composition of all declared tokens."""
        first, *others = (count * kind for kind, count in zip(self._kinds, self._counts, strict=True))
        return sum(others, first)

    @property
    def statement(self) -> str:
        return (
            f"parameters may be chosen adaptively among {sum(self._counts)} declared losses, each spent at most once, "
            f"in any order, stopping at any time: delta(epsilon) is that of the composition of all of them"
        )

    def _charge_cost(self, loss: PrivacyLoss) -> int:
        kind = equal_loss_index(loss, self._kinds)
        if kind is None:
            raise InsufficientBudgetError(
                f"this loss is not one of the {len(self._kinds)} kinds of declared tokens; declare it beforehand, "
                f"or charge a MomentFilter, which takes any loss"
            )
        return kind

    def _refusal_reason(self, cost: int) -> str:
        if self._left[cost]:
            return ""
        spent, left = self._counts[cost], sum(self._left)
        return f"all {spent} tokens of this kind are spent, {left} of other kinds are left; use those, or stop"

    def _spend_cost(self, cost: int) -> None:
        self._left[cost] -= 1
