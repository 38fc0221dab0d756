"""What the points of a coupling stand for in a table: categories, cells of a line, or cells of a map."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from tightrope.certificates.coupling import AxisPart, CategoriesPart, CellsPart
from tightrope.engines.axis_cells import MOST_CELLS, Axis
from tightrope.engines.labels import Labels, Name
from tightrope.errors import InputError
from tightrope.numerics.arrays import Integers
from tightrope.transport.costs.costs import Cost
from tightrope.transport.costs.lattices import grid
from tightrope.transport.costs.real_line import line
from tightrope.transport.solvers.discrete import Discrete

DISCRETE = "discrete"
MOST_CATEGORIES = 10_000
"""Their distances are written out where the largest move is to be small."""


@dataclass(frozen=True, slots=True)
class Categories:
    """The point v is the category ``labels.names[v]`` of one column."""

    column: str
    labels: Labels

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that hold a value."""
        return (self.column,)

    @property
    def names(self) -> tuple[Name, ...]:
        """What each point is called in a table of laws."""
        return self.labels.names

    def unit(self, metric: str) -> str:
        """What distances are measured in."""
        return "1 where the category changes" if metric == DISCRETE else f"units of {self.column}"

    @property
    def metric(self) -> str:
        """The usual distance: that of whole numbers, or 1 between any two texts."""
        return "cityblock" if isinstance(self.names[0], int) else DISCRETE

    def cost(self, metric: str | None = None) -> Cost:
        """|x − y| between whole numbers ("cityblock"), or 1 between any two ("discrete").

        >>> Categories("city", Labels.of(["Bergen", "Oslo"])).cost().matrix().tolist()
        [[0.0, 1.0], [1.0, 0.0]]
        """
        chosen = self.metric if metric is None else metric
        if chosen == DISCRETE:
            if not len(self) <= MOST_CATEGORIES:
                raise InputError("categories", len(self), f"at most {MOST_CATEGORIES}", "group rare ones together")
            return Discrete(len(self))
        if chosen != "cityblock" or self.metric == DISCRETE:
            known = "'discrete', or 'cityblock' for whole numbers"
            raise InputError("metric", chosen, known, "texts have no distances")
        return line([float(name) for name in self.names])

    def part(self, metric: str) -> CategoriesPart:
        """As part of a document."""
        return CategoriesPart(column=self.column, names=self.names, metric=metric)


@dataclass(frozen=True, slots=True)
class Cells:
    """The point v is a cell of one column's range, or of a map of several: numbered as numpy flattens an array."""

    axes: tuple[Axis, ...]

    def __post_init__(self) -> None:
        if not self.axes or len({axis.column for axis in self.axes}) < len(self.axes):
            raise InputError("axes", [axis.column for axis in self.axes], "one axis or more, each of its own column")
        if not prod(self.shape) <= MOST_CELLS:
            raise InputError("cells", self.shape, f"at most {MOST_CELLS} in all", "take larger ones")

    def __len__(self) -> int:
        return prod(self.shape)

    @property
    def shape(self) -> tuple[int, ...]:
        """Cells along each axis."""
        return tuple(axis.cells for axis in self.axes)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that hold a value, one an axis."""
        return tuple(axis.column for axis in self.axes)

    @property
    def names(self) -> tuple[Name, ...]:
        """What each point is called in a table of laws: its number."""
        return tuple(range(len(self)))

    @property
    def metric(self) -> str:
        """The usual distance."""
        return "cityblock"

    def unit(self, metric: str) -> str:
        """What distances are measured in: the column's own units on a line, cells on a map."""
        if len(self.axes) == 1:
            return f"units of {self.axes[0].column}"
        squares = "squares of " if metric == "sqeuclidean" else ""
        return f"{squares}cells of " + " by ".join(f"{axis.width:.6g} {axis.column}" for axis in self.axes)

    def cost(self, metric: str | None = None) -> Cost:
        """Between the centres on a line; between cells at distance 1 on a map, by "cityblock", "euclidean", ….

        >>> Cells((Axis("age", 0, 100, 2),)).cost().matrix().tolist()
        [[0.0, 50.0], [50.0, 0.0]]
        """
        chosen = self.metric if metric is None else metric
        if len(self.axes) > 1:
            return grid(self.shape, metric=chosen)
        if chosen not in ("cityblock", "euclidean"):
            raise InputError("metric", chosen, "'cityblock' (or 'euclidean', which is the same) on a line")
        return line(self.axes[0].centres)

    def numbers(self, values: list[NDArray[np.float64]]) -> Integers:
        """The cell of each value, one array an axis, shape [n] each; −1 where one of them is NaN."""
        parts = [axis.numbers(column) for axis, column in zip(self.axes, values, strict=True)]
        known = np.all([part >= 0 for part in parts], axis=0)
        joined = np.ravel_multi_index(tuple(np.maximum(part, 0) for part in parts), self.shape)
        return np.where(known, joined, -1)

    def centres(self, numbers: Integers) -> list[NDArray[np.float64]]:
        """The middle of each cell, one array an axis, shape [n] each."""
        places = np.unravel_index(numbers, self.shape)
        return [axis.centres[place] for axis, place in zip(self.axes, places, strict=True)]

    def part(self, metric: str) -> CellsPart:
        """As part of a document."""
        axes = (AxisPart(column=a.column, lower=a.lower, upper=a.upper, cells=a.cells) for a in self.axes)
        return CellsPart(axes=tuple(axes), metric=metric)


Support = Categories | Cells


def support_of(part: CategoriesPart | CellsPart) -> Support:
    """The points that a document names; raises ``InputError`` for names and cells that cannot be."""
    if isinstance(part, CategoriesPart):
        return Categories(part.column, Labels.of(part.names))
    return Cells(tuple(Axis(a.column, a.lower, a.upper, a.cells) for a in part.axes))
