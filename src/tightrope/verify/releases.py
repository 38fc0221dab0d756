"""A release certificate: every mechanism composed again from its table, over every way one person's rows may fall."""

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
from tightrope.verify.laws import Grid, GridDistribution, compose_all
from tightrope.verify.tables import MAX_CELLS, TOTAL_WEIGHT, BoxNoise, Noise

T = TypeVar("T")
SPACING_TOLERANCE, MIN_SPACING = 1e-11, 2.0**-14
CHOICE_FAMILY, PARTS_PER_ROW, LARGEST_WEIGHT, MISS_PROBABILITY = "exponential mechanism", 10**6, 1 << 100, 0.05
ROOT_TOLERANCE = 1e-12
"""Name of the exponential mechanism; parts of a row in its distances; the weight at distance 0; how often an
interval may leave out what it is about; and how much more slowly its weights fall than its table does."""


class CompositionGroup(NamedTuple):
    """Mechanisms that the same rows shift, and how one person's rows fall into their groups."""

    mechanisms: tuple[dict[str, Any], ...]
    is_choice: bool
    rows: int
    largest: int
    groups: int

    @property
    def composition_count(self) -> int:
        """Count the compositions of all row splits."""
        if self.groups == 1 or self.largest == 1:
            return 1
        return self.rows * self.largest * (1 if self.groups >= self.rows else self.groups)

    def count_cells(self, one: dict[str, Any]) -> int:
        """Count the cells of a table over all composed shifts: each number of rows, or only the largest."""
        shift, half = self.largest * one["table_steps_per_row"], len(one["table"]["half"])
        shifts = 1 if self.groups == 1 or self.largest == 1 else self.largest
        return int(shifts * (2 * half + shift if one.get("box") is None else half * (2 * shift + 1)))


def composition_groups(mechanisms: Sequence[dict[str, Any]]) -> list[CompositionGroup]:
    """The units of a document."""
    found = []
    for own in mechanisms_by_group(mechanisms):
        shared = {(one["rows"], one["max_rows_per_group"], one["groups"], one.get("exclusive")) for one in own}
        if len(shared) != 1:
            raise BrokenError("mechanisms of one unit whose rows fall in different ways")
        rows, per_group, groups, label = shared.pop()
        if min(rows, per_group, groups) < 1:
            raise BrokenError("fewer than one row, or one group")
        largest = min(rows, per_group)
        draws, most = tuple(_noise_draws(own)), min(rows, largest * groups)
        found.append(CompositionGroup(draws, label is not None, most, largest, groups))
    return found


def _noise_draws(own: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Return the noise draws: each mechanism; of those in a box, drawn jointly, the first."""
    boxed = [one for one in own if one.get("box") is not None]
    for one in boxed:
        names = "box", "table", "table_steps_per_row", "by", "where"
        same = all(one.get(name) == boxed[0].get(name) for name in names)
        if not same or one["box"] != len(boxed) or one.get("exclusive") is not None or one.get("together") is None:
            raise BrokenError("numbers in a box that are not all of it, or are drawn in different ways")
    yield from (one for one in own if one.get("box") is None or one is boxed[0])


def common_spacing(losses: Sequence[Any]) -> Fraction | None:
    """A number of which all of these are whole multiples, but for SPACING_TOLERANCE; found by Euclid's rule, exact for the first."""
    found = 0.0
    for loss in map(float, losses):
        found, rest = max(found, loss), min(found, loss)
        while rest > SPACING_TOLERANCE:
            found, rest = rest, min(found % rest, rest - found % rest)
        if found < MIN_SPACING:
            return None
    if not found:
        return None
    first = losses[0] / round(float(losses[0]) / found)
    return Fraction(int((first * (1 << 160)).mid().floor().unique_fmpz()), 1 << 160)


def worst_row_split(
    unit: CompositionGroup, part: Callable[[int], T], both: Callable[[T, T], T], worst: Callable[[list[T]], T]
) -> T:
    """The worst way in which the rows may fall: c into one group, the others in the worst way into the other groups.

    More rows in a group lose at least as much, so that all rows are used.
    """
    if unit.groups == 1:
        return part(min(unit.rows, unit.largest))

    @cache
    def worst_composition(rows: int, groups: int) -> T:
        require_time_left()
        if groups == 1:
            return part(min(rows, unit.largest))
        sizes = range(1, min(rows, unit.largest) + 1)
        return worst(
            [
                part(c) if c == rows else both(part(c), worst_composition(rows - c, min(groups - 1, rows - c)))
                for c in sizes
            ]
        )

    for rows in range(1, unit.rows):  # smaller ones first: no deep recursion
        worst_composition(rows, min(unit.groups, rows))
    return worst_composition(unit.rows, min(unit.groups, unit.rows))


def choice_claims(name: str, one: dict[str, Any], noise: Noise) -> Iterator[Claim]:
    """A choice by the exponential mechanism is dominated by the noise it is charged as; few intervals leave it out."""
    choice = one.get("choice")
    yield equality_claim(
        f"{name}.family is the exponential mechanism", one["family"] == CHOICE_FAMILY, choice is not None
    )
    if choice is None:
        return
    yield equality_claim(f"{name}.exclusive: rows move every choice of their group", one.get("exclusive"), None)
    below, root, factor = int(choice["below"]), int(choice["root"]), int(one["factor"])
    yield equality_claim(
        f"{name}.sensitivity_per_row", int(one["sensitivity_per_row"]), 2 * max(below, PARTS_PER_ROW - below)
    )
    yield equality_claim(f"{name}.unit", Decimal(one["unit"]) * PARTS_PER_ROW, 1)
    steeper = (arb(root) / TOTAL_WEIGHT) ** 2
    yield equality_claim(
        f"{name}.choice.root: the table dominates the choice", noise.is_lighter_than_laplace(steeper), True
    )
    yield equality_claim(
        f"{name}.choice.root is no larger than needed", steeper <= noise.tail_ratio * (1 + ROOT_TOLERANCE), True
    )
    if choice["target"] is not None:
        # The first place whose weight is so small that all half-widths together have it 5 % of the time at most.
        cells = choice["cells"]
        widths = [0]
        while widths[-1] < cells:
            widths.append(max(widths[-1] + 1, round(2 ** ((len(widths) - 1) / 2))))
        weight, far = LARGEST_WEIGHT, 0
        while Fraction(len(widths) * weight, LARGEST_WEIGHT) > MISS_PROBABILITY:
            following = -(-weight * root // TOTAL_WEIGHT)
            require_affordable(far if following < weight else MAX_CELLS + 1, MAX_CELLS, "weights of a choice")
            weight, far = following, far + 1
        yield equality_claim(f"{name}.choice.target", int(choice["target"]), -(-far * factor // 2))


def chosen_answer_claims(mechanisms: Sequence[dict[str, Any]]) -> Iterator[Claim]:
    """An answer that is chosen has two choices and nothing else: a cell, and a width around it, over the same cells."""
    chosen = [one for one in mechanisms if one.get("choice") is not None]
    for number, answer in enumerate(dict.fromkeys(name for one in chosen for name in one["answers"])):
        own = [one for one in mechanisms if answer in one["answers"] and one.get("exclusive") is None]
        kinds = sorted("noise" if one.get("choice") is None else _choice_target_text(one) for one in own)
        yield equality_claim(f"chosen answer {number}: what is chosen for it", kinds, ["a cell", "a width"])
        names = "by", "where", "rows", "max_rows_per_group", "groups", "together"
        said = {json.dumps([[one.get(name) for name in names], one["choice"]["below"]]) for one in own if one in chosen}
        yield equality_claim(f"chosen answer {number}: both speak of the same rows and share", len(said), 1)
        counted = {one["by"][-1].rpartition(",")[2].strip(" )") if one["by"] else "" for one in own}
        cells = {str(one["choice"]["cells"]) for one in own if one in chosen}
        yield equality_claim(f"chosen answer {number}: cells", cells, counted)


def _choice_target_text(one: dict[str, Any]) -> str:
    return "a cell" if one["choice"]["target"] is None else "a width"


def noise_of_mechanism(one: dict[str, Any]) -> Noise:
    """Return the noise of a mechanism, from its table."""
    return Noise(one["table"]) if one.get("box") is None else BoxNoise(one["table"], one["box"])


class Composition:
    """All mechanisms of a certificate, composed on a grid."""

    def __init__(self, mechanisms: Sequence[dict[str, Any]]) -> None:
        self.units = composition_groups(mechanisms)
        cells = (unit.count_cells(one) for unit in self.units for one in unit.mechanisms)
        require_affordable(sum(cells), MAX_CELLS, "cells of all tables, under all shifts")
        known: dict[str, Noise] = {}
        self.noises = {}
        for one in mechanisms:
            text = json.dumps([one["table"], one.get("box")], sort_keys=True)
            self.noises[id(one)] = known[text] = known.get(text) or noise_of_mechanism(one)
        self._laws: dict[Any, GridDistribution] = {}

    def loss_on_grid(self, grid: Grid) -> GridDistribution:
        """The loss of everything; rounded down: of the fullest way of the rows."""
        self._laws.clear()
        return compose_all(grid, [self._group_loss(grid, unit) for unit in self.units])

    @property
    def loss_spacing(self) -> Fraction | None:
        """Return the approximate common divisor of all losses; None if it does not exist or is too small."""
        return common_spacing(
            [fall for noise in {id(n): n for n in self.noises.values()}.values() for fall in noise.log_ratios]
        )

    def largest_loss(self) -> Any:
        """Return the largest loss; None if some loss is infinite."""
        if any(self._infinite_loss_mass(unit) > 0 for unit in self.units):
            return None
        return sum((self._largest_group_loss(unit) for unit in self.units), arb(0))

    def _group_loss(self, grid: Grid, unit: CompositionGroup) -> GridDistribution:
        def loss_for_rows(rows: int) -> GridDistribution:
            laws = [self._mechanism_loss(grid, one, rows) for one in unit.mechanisms]
            if unit.is_choice:
                return grid.pointwise_worst(list({id(law): law for law in laws}.values())) if grid.up else laws[0]
            return compose_all(grid, laws)

        if unit.groups == 1 or unit.largest == 1 or not grid.up:
            return grid.convolve_power(cache(loss_for_rows)(unit.largest), unit.rows // unit.largest)
        return worst_row_split(unit, cache(loss_for_rows), grid.convolve_pair, grid.pointwise_worst)

    def _mechanism_loss(self, grid: Grid, one: dict[str, Any], rows: int) -> GridDistribution:
        noise, shift = self.noises[id(one)], rows * one["table_steps_per_row"]
        if (grid.up, id(noise), shift) not in self._laws:
            self._laws[grid.up, id(noise), shift] = noise.loss_on_grid(grid, shift)
        return self._laws[grid.up, id(noise), shift]

    def _infinite_loss_mass(self, unit: CompositionGroup) -> Any:
        shift = unit.largest
        return sum(
            (self.noises[id(one)].one_sided_mass(shift * one["table_steps_per_row"]) for one in unit.mechanisms), arb(0)
        )

    def _largest_group_loss(self, unit: CompositionGroup) -> Any:
        def largest_for_rows(rows: int) -> Any:
            tops = [self.noises[id(one)].largest_loss(rows * one["table_steps_per_row"]) for one in unit.mechanisms]
            return max(tops) if unit.is_choice else sum(tops, arb(0)).upper()

        return worst_row_split(unit, cache(largest_for_rows), lambda a, b: (a + b).upper(), max)
