"""Names of finitely many things – categories, groups, places – and their numbers 0, 1, …, in columns of a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tightrope.engines.guard import load
from tightrope.errors import InputError, SchemaError

Name = str | int
ABSENT = -1


@dataclass(frozen=True, slots=True)
class Labels:
    """``names[v]`` is the name of number v: all text, or all whole numbers of 64 bits, none twice."""

    names: tuple[Name, ...]

    @classmethod
    def of(cls, names: Sequence[Name]) -> Self:
        """From names in order; ``InputError`` for none, repeated, mixed or other ones.

        >>> Labels.of(["Bergen", "Oslo"]).names
        ('Bergen', 'Oslo')
        """
        found = tuple(name.item() if isinstance(name, np.generic) else name for name in names)
        kinds = {type(name) for name in found}
        if kinds not in ({str}, {int}):
            raise InputError("labels", [kind.__name__ for kind in kinds], "all text or all whole numbers, at least one")
        if len(set(found)) != len(found):
            raise InputError("labels", f"{len(found) - len(set(found))} repeated", "a list without repetitions")
        if kinds == {int} and not all(-(1 << 63) <= int(name) < 1 << 63 for name in found):
            raise InputError("labels", found, "whole numbers of 64 bits", "name them by text")
        return cls(found)

    def __len__(self) -> int:
        return len(self.names)

    def numbers(self, column: Any) -> NDArray[np.int64]:
        """The number of each entry of an Arrow column, shape [n]; −1 where it is NULL or none of the names.

        Raises ``SchemaError`` where the column is not of the names' kind.

        >>> import pyarrow
        >>> Labels.of(["Bergen", "Oslo"]).numbers(pyarrow.array(["Oslo", None, "Rome"])).tolist()
        [1, -1, -1]
        """
        column = self._comparable(column)
        places = load("pyarrow.compute").index_in(column, value_set=self._names(), skip_nulls=True).fill_null(ABSENT)
        return numpy_of(places)

    def named(self, numbers: NDArray[Any]) -> Any:
        """The names of numbers in 0..k − 1, shape [n], as an Arrow array.

        >>> Labels.of(["Bergen", "Oslo"]).named(np.array([1, 1, 0])).to_pylist()
        ['Oslo', 'Oslo', 'Bergen']
        """
        return self._names().take(load("pyarrow").array(numbers))

    def _names(self) -> Any:
        arrow = load("pyarrow")
        return arrow.array(self.names, arrow.string() if isinstance(self.names[0], str) else arrow.int64())

    def _comparable(self, column: Any) -> Any:
        arrow = load("pyarrow")
        kind = column.type.value_type if arrow.types.is_dictionary(column.type) else column.type
        text = arrow.types.is_string(kind) or arrow.types.is_large_string(kind)
        if isinstance(self.names[0], str) != text or not (text or arrow.types.is_integer(kind)):
            wanted = "text" if isinstance(self.names[0], str) else "whole numbers"
            raise SchemaError("column", str(column.type), f"of {wanted}, like the labels", "cast the column")
        return column.cast(arrow.string()) if text else signed(column)


def signed(column: Any) -> Any:
    """A column of whole numbers, or of truth values, as int64; numbers from 2⁶³ on, which no name has, are NULL.

    A cast would fail on them with an error that quotes one.
    """
    arrow, compute = load("pyarrow"), load("pyarrow.compute")
    column = column.cast(column.type.value_type) if arrow.types.is_dictionary(column.type) else column
    if arrow.types.is_uint64(column.type):
        fits = compute.less(column, arrow.scalar(1 << 63, arrow.uint64()))
        column = compute.if_else(fits, column, arrow.scalar(None, arrow.uint64()))
    return column.cast(arrow.int64())


def numpy_of(column: Any) -> NDArray[Any]:
    """An Arrow array or chunked array without NULLs as a numpy array."""
    return np.asarray(column.to_numpy(zero_copy_only=False) if hasattr(column, "offset") else column.to_numpy())
