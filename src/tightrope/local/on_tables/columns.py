"""Values in columns of tables as what mechanisms perturb: every entry becomes a legal one, whatever it is.

An entry that is missing or unknown is replaced, not dropped: whether somebody reports must say nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tightrope.engines import Labels, Table
from tightrope.engines.labels import ABSENT, numpy_of, signed
from tightrope.errors import SchemaError
from tightrope.numerics.arrays import Floats
from tightrope.randomness.integers import below


@dataclass(frozen=True, slots=True)
class Categories:
    """Names of ``labels``, or whole numbers, as categories 0..k − 1; others as uniformly random ones."""

    k: int
    labels: Labels | None

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of column that it reads."""
        if self.labels is not None:
            return ("text",) if isinstance(self.labels.names[0], str) else ("integer",)
        return ("integer", "boolean") if self.k == 2 else ("integer",)

    def of(self, column: Any) -> NDArray[np.int64]:
        """The category of each entry of an Arrow array, shape [n].

        >>> import pyarrow
        >>> Categories(2, Labels.of(["no", "yes"])).of(pyarrow.array(["yes", "no"])).tolist()
        [1, 0]
        """
        numbers = self._numbers(column)
        unknown = np.flatnonzero((numbers < 0) | (numbers >= self.k))
        if not len(unknown):
            return numbers
        numbers = numbers.copy()
        numbers[unknown] = below(self.k, len(unknown))
        return numbers

    def _numbers(self, column: Any) -> NDArray[np.int64]:
        return numpy_of(signed(column).fill_null(ABSENT)) if self.labels is None else self.labels.numbers(column)


@dataclass(frozen=True, slots=True)
class Numbers:
    """Numbers in [lower, upper]: NULL and NaN are the middle, what lies beyond an end is that end."""

    lower: float
    upper: float

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of column that it reads."""
        return ("integer", "number", "boolean")

    def of(self, column: Any) -> Floats:
        """Each entry of an Arrow array, shape [n].

        >>> import pyarrow
        >>> Numbers(0.0, 10.0).of(pyarrow.array([3.0, None, 99.0])).tolist()
        [3.0, 5.0, 10.0]
        """
        import pyarrow

        middle = self.lower + (self.upper - self.lower) / 2
        numbers = numpy_of(column.cast(pyarrow.float64(), safe=False).fill_null(middle))
        return np.clip(np.where(np.isnan(numbers), middle, numbers), self.lower, self.upper)


def check_column(table: Table, name: str, values: Categories | Numbers) -> None:
    """``SchemaError`` unless the column is there and has a kind that the values can be read from."""
    kind = table.schema.column(name).kind
    if kind not in values.kinds:
        expected = f"of kind {' or '.join(values.kinds)}, but it is {kind}"
        raise SchemaError("column", name, expected, "name its categories, or cast the column")
