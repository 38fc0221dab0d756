"""Quantiles of a column: where a share of its values lies below. One is chosen; several are read from counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, Unpack, final

from tightrope.engines.expressions.cells import Cell
from tightrope.engines.expressions.terms import Term
from tightrope.engines.schema import Schema
from tightrope.errors import PlanError
from tightrope.mechanisms.choices.quantile import millionths
from tightrope.numerics.checks import finite
from tightrope.release.quantiles.chosen import Chosen
from tightrope.release.quantiles.counted import Counted
from tightrope.release.quantiles.grid import Grid
from tightrope.release.questions.asked import Asked, Asking, Given, asking, spelled_out
from tightrope.release.questions.node import Integers, Noises, Question, Record
from tightrope.release.questions.of_column import OfColumn, column_term, declared
from tightrope.release.questions.vector import Vector

MEDIAN = 0.5


FEW_ROWS = "; where there are few rows or none, an arbitrary value of the range, with an interval of nearly all of it"
"""A choice has a value whatever the rows are, and no count of rows is paid for beside it."""


@final
@dataclass(frozen=True, slots=True)
class Quantile(OfColumn):
    """The least value that at least a share ``q`` of the clamped values of each group do not exceed."""

    q: float
    counted: bool = False
    """Whether it is read from counts that others share; else it is chosen."""

    kind = "quantile"
    meaning = "The value that a share of all values does not exceed"
    additive = False
    uniform = False
    notes = ("of the bounds on a person only that on all rows applies to groups of quantiles",)
    entries = ("column", "between", "q")

    def meaning_for(self, means: str) -> str:
        """Which share lies below: half of all, or 90 %."""
        del means
        part = "half" if self.q == MEDIAN else f"{100 * self.q:g} %"
        return f"The value that {part} of all values do not exceed{'' if self.counted else FEW_ROWS}"

    @property
    def what(self) -> str:
        """Which quantile."""
        return "median" if self.q == MEDIAN else f"{self.q:g} quantile"

    @classmethod
    def at(cls, column: object, q: object, between: object, asked: Asking) -> Self:
        """The question, checked; raises ``PlanError`` naming what is wrong."""
        if isinstance(q, list | tuple):
            raise PlanError("q", q, "one number", "write one [[question]] for each; in Python say tr.quantiles")
        term, share = column_term("column", column), finite("q", q, "0.5 is the median")
        if not 0 < share < 1:
            raise PlanError("q", q, "above 0 and below 1", "0.5 is the median")
        named = ("median",) if share == MEDIAN else ("quantile", f"{share:g}")
        found = Asked.of(*named, str(term), **asked)
        if found.groups_per_person is not None or (found.by and found.rows_per_group is not None):
            remedy = "rows_per_person bounds all groups of quantiles together"
            raise PlanError("rows_per_group", found.rows_per_group, "left out, as groups_per_person", remedy)
        return cls(found, term, declared(term, between), share)

    @classmethod
    def from_entry(cls, entry: Mapping[str, Any]) -> Self:
        """The column, its range and the share: the median where that is left out."""
        return cls.at(entry.get("column"), entry.get("q", MEDIAN), entry.get("between"), asking(entry))

    def settled(self, schema: Schema, where: Term | None = None) -> Self:
        """Raises ``PlanError`` where its groups would have to be discovered."""
        found = OfColumn.settled(self, schema, where)
        if found.by and found.keys is None:
            remedy = "list the groups with keys=[...]: those of quantiles cannot be discovered"
            raise PlanError("keys", None, "given", remedy)
        return found

    @property
    def cell(self) -> Cell:
        """The grid: cells of equal width around round numbers, where many values lie; the last reaches to the end."""
        return self._grid.cell(self.column)

    def among(self, together: Sequence[Question]) -> Self:
        """Chosen where it is the only one of its column and groups; several are read from counts that serve all."""
        return replace(self, counted=len(together) > 1 or millionths(self.q) is None)

    @property
    def rules(self) -> tuple[str, ...]:
        """What depends on how it is answered, then what holds for all."""
        return (*self._way.notes, *self.notes)

    @property
    def _grid(self) -> Grid:
        return Grid(*self.between)

    @property
    def _way(self) -> Counted | Chosen:
        exact = None if self.counted else millionths(self.q)
        if exact is None:
            return Counted(self._grid, self.q, self.asked.size)
        return Chosen(self._grid, exact, self.asked.size)

    def vectors(self) -> tuple[Vector, ...]:
        """Two choices, or counts by block and by cell."""
        return self._way.vectors()

    def record(self, integers: Integers, noises: Noises) -> Record:
        """The value and its interval; ``usable`` is the noisy number of values, where they are counted."""
        return self._way.record(integers, noises)

    def errors(self, noises: Noises, people: int) -> tuple[float, float]:
        """For values that are spread evenly over the range; where they lie closer together, errors are smaller."""
        return self._way.errors(noises, people)

    def withheld(self, noises: Noises, people: int) -> float:
        """How likely too few rows seem to be there, where they are counted."""
        return self._way.withheld(noises, people)


@spelled_out
def quantile(
    column: Given, q: float, *, between: tuple[float, float] | None = None, **asked: Unpack[Asking]
) -> Quantile:
    """The value that a share ``q`` of a column's values does not exceed, each value clamped to ``between``.

    One quantile of a column, range and groups is chosen from a grid of ``between``, by the exponential mechanism.
    Several are read from the same noisy counts: any number costs the same, and they never cross. Groups are listed with
    ``keys``, or follow from expressions. The other keywords are those of ``count``. Raises ``PlanError`` naming what is
    wrong.

    >>> quantile("income", 0.9, between=(0, 200_000)).name
    'quantile_0.9_income'
    """
    return Quantile.at(column, q, between, asked)


@spelled_out
def median(column: Given, *, between: tuple[float, float] | None = None, **asked: Unpack[Asking]) -> Quantile:
    """The median of a column: ``quantile`` with q = 0.5.

    >>> str(median("income", between=(0, 200_000)))
    'median of income between 0 and 200000'
    """
    return Quantile.at(column, MEDIAN, between, asked)


def quantiles(
    column: Given, qs: Sequence[float], *, between: tuple[float, float] | None = None, **asked: Unpack[Asking]
) -> list[Quantile]:
    """A question for each of several quantiles, any number at one cost: ``session.plan([*tr.quantiles(...), ...])``.

    >>> [str(one) for one in quantiles("age", [0.25, 0.75], between=(0, 100))]
    ['0.25 quantile of age between 0 and 100', '0.75 quantile of age between 0 and 100']
    """
    if asked.get("name") is not None:
        raise PlanError("name", asked.get("name"), "left out", "each quantile has a name of its own")
    shares = list(qs) if isinstance(qs, Iterable) else []
    if not shares:
        raise PlanError("qs", qs, "a list of at least one number", "say [0.25, 0.5, 0.75]")
    return [Quantile.at(column, q, between, asked) for q in shares]
