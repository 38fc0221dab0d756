"""Composition of the mechanisms of a release certificate, from their tables, over all splits of one person's rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple, TypeVar

from flint import arb

from tightrope.verify.claims import BrokenError, Claim, equality_claim, require_affordable, require_time_left
from tightrope.verify.contributions import mechanisms_by_group
from tightrope.verify.loss_grid import Grid, GridDistribution, compose_all
from tightrope.verify.tables import MAX_CELLS, TOTAL_WEIGHT, BoxNoise, Noise

T = TypeVar("T")
SPACING_TOLERANCE, MIN_SPACING = 1e-11, 2.0**-14
"""Tolerance of a common divisor of losses, and the smallest one that is used."""
CHOICE_FAMILY = "exponential mechanism"
PARTS_PER_ROW = 10**6
"""Units of a row in which the exponential mechanism measures distances."""
LARGEST_WEIGHT = 1 << 100
"""Weight of the exponential mechanism at distance 0."""
MISS_PROBABILITY = 0.05
"""Largest probability that a chosen interval misses the value."""
ROOT_TOLERANCE = 1e-12
"""Relative amount by which the ratio of the weights of a choice may exceed that of its table."""


class CompositionGroup(NamedTuple):
    """Mechanisms that the same rows shift, and the limits on one person's rows.

    ``rows`` in all, at most ``largest`` in one group and ``groups`` groups; ``is_choice`` for an exclusive set.
    ``disjoint`` and ``where``: a row moves the groups of one condition only of those with the same number.
    """

    mechanisms: tuple[dict[str, Any], ...]
    is_choice: bool
    rows: int
    largest: int
    groups: int
    disjoint: int | None = None
    where: str | None = None

    @property
    def composition_count(self) -> int:
        """The number of compositions that ``worst_row_split`` evaluates."""
        if self.groups == 1 or self.largest == 1:
            return 1
        return self.rows * self.largest * (1 if self.groups >= self.rows else self.groups)

    def count_cells(self, mechanism: dict[str, Any]) -> int:
        """Count the cells of a table under all composed shifts: by each number of rows, or only the largest."""
        shift, half = self.largest * mechanism["table_steps_per_row"], len(mechanism["table"]["half"])
        shifts = 1 if self.groups == 1 or self.largest == 1 else self.largest
        return int(shifts * (2 * half + shift if mechanism.get("box") is None else half * (2 * shift + 1)))


def composition_groups(mechanisms: Sequence[dict[str, Any]]) -> list[CompositionGroup]:
    """Return the composition groups of a document; raises ``BrokenError`` if limits within one differ."""
    groups = []
    for members in mechanisms_by_group(mechanisms):
        names = "rows", "max_rows_per_group", "groups", "exclusive", "disjoint"
        limits: set[tuple[Any, ...]] = {
            (*map(mechanism.get, names), mechanism.get("disjoint") and mechanism.get("where")) for mechanism in members
        }
        if len(limits) != 1:
            raise BrokenError("mechanisms of one unit whose rows fall in different ways")
        rows, max_rows_per_group, max_groups, label, disjoint, where = limits.pop()
        if min(rows, max_rows_per_group, max_groups) < 1:
            raise BrokenError("fewer than one row, or one group")
        largest = min(rows, max_rows_per_group)
        draws, used_rows = tuple(_independent_draws(members)), min(rows, largest * max_groups)
        groups.append(CompositionGroup(draws, label is not None, used_rows, largest, max_groups, disjoint, where))
    return groups


def _independent_draws(members: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield one mechanism for each noise draw: of the mechanisms in a box, whose noise is drawn jointly, the first."""
    in_box = [mechanism for mechanism in members if mechanism.get("box") is not None]
    for mechanism in in_box:
        names = "box", "table", "table_steps_per_row", "by", "where"
        is_same = all(mechanism.get(name) == in_box[0].get(name) for name in names)
        if (
            not is_same
            or mechanism["box"] != len(in_box)
            or mechanism.get("exclusive") is not None
            or mechanism.get("together") is None
        ):
            raise BrokenError("numbers in a box that are not all of it, or are drawn in different ways")
    yield from (mechanism for mechanism in members if mechanism.get("box") is None or mechanism is in_box[0])


def common_spacing(losses: Sequence[Any]) -> Fraction | None:
    """Return the greatest common divisor of the losses, up to ``SPACING_TOLERANCE``; None if it is too small.

    Euclid's algorithm in floats; the result is then corrected to divide the first loss precisely.
    """
    spacing = 0.0
    for loss in map(float, losses):
        spacing, remainder = max(spacing, loss), min(spacing, loss)
        while remainder > SPACING_TOLERANCE:
            spacing, remainder = remainder, min(spacing % remainder, remainder - spacing % remainder)
        if spacing < MIN_SPACING:
            return None
    if not spacing:
        return None
    first = losses[0] / round(float(losses[0]) / spacing)
    return Fraction(int((first * (1 << 160)).mid().floor().unique_fmpz()), 1 << 160)


def worst_row_split(
    group: CompositionGroup,
    evaluate: Callable[[int], T],
    combine: Callable[[T, T], T],
    select_worst: Callable[[list[T]], T],
) -> T:
    """Return the worst case over all splits of one person's rows into groups, by dynamic programming.

    ``evaluate`` returns the loss of a number of rows in one group, ``combine`` composes two losses, and
    ``select_worst`` returns an upper bound on several. More rows never lose less, so all rows are used.
    """
    if group.groups == 1:
        return evaluate(min(group.rows, group.largest))

    @cache
    def worst_composition(rows: int, groups: int) -> T:
        require_time_left()
        if groups == 1:
            return evaluate(min(rows, group.largest))
        sizes = range(1, min(rows, group.largest) + 1)
        return select_worst(
            [
                evaluate(count)
                if count == rows
                else combine(evaluate(count), worst_composition(rows - count, min(groups - 1, rows - count)))
                for count in sizes
            ]
        )

    for rows in range(1, group.rows):  # smaller ones first: no deep recursion
        worst_composition(rows, min(group.groups, rows))
    return worst_composition(group.rows, min(group.groups, group.rows))


def choice_claims(name: str, mechanism: dict[str, Any], noise: Noise) -> Iterator[Claim]:
    """Check that a choice by the exponential mechanism is dominated by its table, and the target of a chosen width."""
    choice = mechanism.get("choice")
    yield equality_claim(
        f"{name}.family is the exponential mechanism", mechanism["family"] == CHOICE_FAMILY, choice is not None
    )
    if choice is None:
        return
    yield equality_claim(f"{name}.exclusive: rows move every choice of their group", mechanism.get("exclusive"), None)
    below, root = int(choice["below"]), int(choice["root"])
    yield equality_claim(
        f"{name}.sensitivity_per_row", int(mechanism["sensitivity_per_row"]), 2 * max(below, PARTS_PER_ROW - below)
    )
    yield equality_claim(f"{name}.unit", Decimal(mechanism["unit"]) * PARTS_PER_ROW, 1)
    ratio = (arb(root) / TOTAL_WEIGHT) ** 2
    yield equality_claim(
        f"{name}.choice.root: the table dominates the choice", noise.is_lighter_than_laplace(ratio), True
    )
    yield equality_claim(
        f"{name}.choice.root is no larger than needed", ratio <= noise.tail_ratio * (1 + ROOT_TOLERANCE), True
    )
    is_extreme = below in (0, PARTS_PER_ROW)
    yield equality_claim(f"{name}.choice.left_out: exists", choice.get("left_out") is not None, is_extreme)
    if choice["target"] is not None:
        target = _rare_distance(mechanism, MISS_PROBABILITY)
        yield equality_claim(f"{name}.choice.target", int(choice["target"]), target)


def _rare_distance(mechanism: dict[str, Any], probability: float) -> int:
    """Return the first distance whose weight, summed over all cells or half-widths, is at most this part of w(0)."""
    choice, widths, weight, distance = mechanism["choice"], [0], LARGEST_WEIGHT, 0
    while widths[-1] < choice["cells"]:
        widths.append(max(widths[-1] + 1, round(2 ** ((len(widths) - 1) / 2))))
    while (
        Fraction((choice["cells"] if choice["target"] is None else len(widths)) * weight, LARGEST_WEIGHT) > probability
    ):
        next_weight = -(-weight * int(choice["root"]) // TOTAL_WEIGHT)
        require_affordable(distance if next_weight < weight else MAX_CELLS + 1, MAX_CELLS, "weights of a choice")
        weight, distance = next_weight, distance + 1
    return -(-distance * int(mechanism["factor"]) // 2)


def chosen_answer_claims(mechanisms: Sequence[dict[str, Any]]) -> Iterator[Claim]:
    """Check that a chosen answer has two choices over the same cells, a cell and a width, and no other noise."""
    choices = [mechanism for mechanism in mechanisms if mechanism.get("choice") is not None]
    for number, answer in enumerate(dict.fromkeys(name for mechanism in choices for name in mechanism["answers"])):
        members = [one for one in mechanisms if answer in one["answers"] and one.get("exclusive") is None]
        yield from cell_and_width_claims(f"chosen answer {number}", members)


def cell_and_width_claims(name: str, members: Sequence[dict[str, Any]]) -> Iterator[Claim]:
    """Check that the mechanisms of an answer are the choices of a cell and of a width, with the same rows and cells."""
    kinds, chosen = sorted(map(_choice_kind, members)), [one for one in members if one.get("choice") is not None]
    yield equality_claim(f"{name}: what is chosen for it", kinds, ["a cell", "a width"])
    both, ranks = ("by", "where", "rows", "max_rows_per_group", "groups", "together"), ("below", "left_out")
    scopes = {json.dumps([[one.get(key) for key in both], [one["choice"].get(key) for key in ranks]]) for one in chosen}
    yield equality_claim(f"{name}: both speak of the same rows and share", len(scopes), 1)
    counted = {one["by"][-1].rpartition(",")[2].strip(" )") if one["by"] else "" for one in members}
    yield equality_claim(f"{name}: cells", {str(one["choice"]["cells"]) for one in chosen}, counted)
    cell, width = sorted(chosen, key=_choice_kind) if kinds == ["a cell", "a width"] else ({}, {})
    if cell and cell["choice"].get("left_out") is not None:
        reach = sum(_rare_distance(width, probability) for probability in (MISS_PROBABILITY, 0.5))
        rows = -(-max(_rare_distance(cell, MISS_PROBABILITY), reach) // PARTS_PER_ROW)
        yield equality_claim(f"{name}: rows left out", int(cell["choice"]["left_out"]), rows)


def _choice_kind(mechanism: dict[str, Any]) -> str:
    choice = mechanism.get("choice")
    return "noise" if choice is None else "a cell" if choice["target"] is None else "a width"


JOINT_NOISE: dict[str, Callable[[dict[str, Any], int], Noise]] = {"box": BoxNoise}
"""The noise of several numbers that share it, by the field with their number."""


def noise_of_mechanism(mechanism: dict[str, Any]) -> Noise:
    """Return the noise of a mechanism, from its table."""
    table, box = mechanism["table"], mechanism.get("box")
    return Noise(table) if box is None else JOINT_NOISE["box"](table, box)


class Composition:
    """The mechanisms of a certificate and their noise, to be composed on grids."""

    def __init__(self, mechanisms: Sequence[dict[str, Any]]) -> None:
        self.groups = composition_groups(mechanisms)
        cells = (group.count_cells(mechanism) for group in self.groups for mechanism in group.mechanisms)
        require_affordable(sum(cells), MAX_CELLS, "cells of all tables, under all shifts")
        noises: dict[str, Noise] = {}
        self.noises = {}
        for mechanism in mechanisms:
            text = json.dumps([mechanism["table"], mechanism.get("box")], sort_keys=True)
            self.noises[id(mechanism)] = noises[text] = noises.get(text) or noise_of_mechanism(mechanism)
        self._distributions: dict[Any, GridDistribution] = {}

    def loss_on_grid(self, grid: Grid) -> GridDistribution:
        """Return the loss of the release; on a grid that rounds down, for the split with the fullest groups."""
        self._distributions.clear()
        return self._compose_groups(
            lambda group: self._group_loss(grid, group),
            lambda losses: compose_all(grid, losses),
            # Of two conditions that no row meets together, one is a lower bound.
            grid.pointwise_worst
            if grid.up
            else lambda losses: max(losses, key=lambda loss: grid.delta_profile(loss, 0, 0)[0]),
        )

    def _compose_groups(
        self, evaluate: Callable[[CompositionGroup], T], combine: Callable[[list[T]], T], worst: Callable[[list[T]], T]
    ) -> T:
        """Combine all groups; of conditions that no row meets together, the worst one's."""
        sets: dict[object, dict[str | None, list[T]]] = {}
        for index, group in enumerate(self.groups):
            key = f"alone {index}" if group.disjoint is None else group.disjoint
            sets.setdefault(key, {}).setdefault(group.where, []).append(evaluate(group))
        return combine([worst([combine(parts) for parts in members.values()]) for members in sets.values()])

    @property
    def loss_spacing(self) -> Fraction | None:
        """Return the approximate common divisor of all losses; None if it does not exist or is too small."""
        return common_spacing(
            [fall for noise in {id(n): n for n in self.noises.values()}.values() for fall in noise.log_ratios]
        )

    def largest_loss(self) -> Any:
        """Return the largest loss; None if some loss is infinite."""
        if any(self._infinite_loss_mass(group) > 0 for group in self.groups):
            return None
        return self._compose_groups(self._largest_group_loss, lambda losses: sum(losses, arb(0)).upper(), max)

    def _group_loss(self, grid: Grid, group: CompositionGroup) -> GridDistribution:
        def loss_for_rows(rows: int) -> GridDistribution:
            distributions = [self._mechanism_loss(grid, mechanism, rows) for mechanism in group.mechanisms]
            if group.is_choice:
                return (
                    grid.pointwise_worst(
                        list({id(distribution): distribution for distribution in distributions}.values())
                    )
                    if grid.up
                    else distributions[0]
                )
            return compose_all(grid, distributions)

        if group.groups == 1 or group.largest == 1 or not grid.up:
            return grid.convolve_power(cache(loss_for_rows)(group.largest), group.rows // group.largest)
        return worst_row_split(group, cache(loss_for_rows), grid.convolve_pair, grid.pointwise_worst)

    def _mechanism_loss(self, grid: Grid, mechanism: dict[str, Any], rows: int) -> GridDistribution:
        noise, shift = self.noises[id(mechanism)], rows * mechanism["table_steps_per_row"]
        if (grid.up, id(noise), shift) not in self._distributions:
            self._distributions[grid.up, id(noise), shift] = noise.loss_on_grid(grid, shift)
        return self._distributions[grid.up, id(noise), shift]

    def _infinite_loss_mass(self, group: CompositionGroup) -> Any:
        shift = group.largest
        return sum(
            (
                self.noises[id(mechanism)].one_sided_mass(shift * mechanism["table_steps_per_row"])
                for mechanism in group.mechanisms
            ),
            arb(0),
        )

    def _largest_group_loss(self, group: CompositionGroup) -> Any:
        def largest_for_rows(rows: int) -> Any:
            losses = [
                self.noises[id(mechanism)].largest_loss(rows * mechanism["table_steps_per_row"])
                for mechanism in group.mechanisms
            ]
            return max(losses) if group.is_choice else sum(losses, arb(0)).upper()

        return worst_row_split(group, cache(largest_for_rows), lambda a, b: (a + b).upper(), max)
