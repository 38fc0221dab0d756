"""One person in a grouped answer: the worst way their rows may fall into groups (theory §4.3).

A person with at most r rows, at most s in a group and in at most g groups may put c_1 + c_2 + … ≤ r rows into groups.
The loss of a split is the composition of the losses of its parts, and the answer is dominated by the pointwise
maximum of whole profiles over the splits: fixing one worst split is unsafe, because other answers shift the ε that
matters. The maximum is built row by row, F_n = max_c L_c + F_{n−c}: it covers every split, and any order of groups.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tightrope.errors import InputError
from tightrope.numerics.checks import whole
from tightrope.privacy.masses import Masses, Window, worst

MOST_COMPOSITIONS = 2500
"""Compositions that one person's worst split may take; where it would take more, it is bounded (``many_rows``)."""
MOST_ROWS = 10_000
"""Rows of one person, where they may fall in several ways."""


@dataclass(frozen=True, slots=True)
class Contribution:
    """At most ``rows`` rows of a person, ``rows_per_group`` in one group, ``groups`` groups."""

    rows: int
    rows_per_group: int
    groups: int

    def __post_init__(self) -> None:
        for name in ("rows", "rows_per_group", "groups"):
            whole(name, getattr(self, name))
        if not (self.one_way or self.most_rows <= MOST_ROWS):
            raise InputError(
                "rows_per_person",
                self.rows,
                f"at most {MOST_ROWS} where they may fall into groups in several ways",
                "bound the person further: rows_per_group=1, groups_per_person=1, or fewer rows",
            )

    @property
    def largest_part(self) -> int:
        """Most rows in one group."""
        return min(self.rows, self.rows_per_group)

    @property
    def most_rows(self) -> int:
        """Most rows that count at all."""
        return min(self.rows, self.largest_part * self.groups)

    @property
    def one_way(self) -> bool:
        """Whether there is but one full split."""
        return self.groups == 1 or self.largest_part == 1

    @property
    def levels(self) -> int:
        """How often all rows are gone through: once where any number of groups is allowed, or stands for fewer."""
        one = self.most_rows * self.largest_part
        few = self.groups < self.most_rows and self.groups * one <= MOST_COMPOSITIONS
        return self.groups if few else 1

    @property
    def exact(self) -> bool:
        """Whether every split is composed; else they are bounded together."""
        return self.one_way or self.levels * self.most_rows * self.largest_part <= MOST_COMPOSITIONS


def fullest_split(part: Callable[[int], Masses], contribution: Contribution) -> Masses:
    """The law of one split, as many of the largest parts as there can be: no noise that keeps less will do."""
    return part(contribution.largest_part) ** (contribution.most_rows // contribution.largest_part)


def worst_split(part: Callable[[int], Masses], contribution: Contribution, window: Window) -> Masses:
    """The law that dominates every split of an ``exact`` contribution; ``part(c)`` is that of one group with c rows.

    Laws for more rows must dominate those for fewer (so they do for unimodal noise), so only full splits count.
    Where few groups would take too long, any number of groups stands for them: it dominates.
    """
    rows, largest = contribution.most_rows, contribution.largest_part
    if contribution.groups == 1:
        return part(largest)
    if largest == 1:
        return part(1) ** rows
    parts = [part(c) for c in range(1, largest + 1)]
    if contribution.levels == 1:
        return _any_groups(parts, rows, window)
    return _few_groups(parts, rows, contribution.groups, window)


def _any_groups(parts: list[Masses], rows: int, window: Window) -> Masses:
    """F_n = max over c of part c and F_{n−c}, n = 1..rows."""
    best = [Masses.certain(window)]
    for n in range(1, rows + 1):
        best.append(_worst_last(parts, best, n))
    return best[rows]


def _few_groups(parts: list[Masses], rows: int, groups: int, window: Window) -> Masses:
    """The same with at most ``groups`` ≥ 2 parts: F_{g,n} = max over c of part c and F_{g−1,n−c}, F_{1,n} = part n."""
    certain = Masses.certain(window)
    best = [certain, *parts, *[parts[-1]] * (rows - len(parts))]
    for g in range(2, groups):
        reachable = range(1, min(rows, g * len(parts)) + 1)
        best = [certain, *(_worst_last(parts, best, n) for n in reachable)]
        best += [best[-1]] * (rows + 1 - len(best))
    return _worst_last(parts, best, rows)


def _worst_last(parts: list[Masses], best: list[Masses], rows: int) -> Masses:
    """The maximum over the size of the last part; the others are ``best`` with the rows that it leaves."""
    return worst([part * best[rows - c] for c, part in enumerate(parts[:rows], start=1)])
