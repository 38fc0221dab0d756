"""The schema of a table: names and kinds of columns, without any values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tightrope.errors import SchemaError, quoted_names, suggest_nearest

Kind = Literal["integer", "number", "text", "boolean", "date", "timestamp", "other"]


@dataclass(frozen=True, slots=True)
class Column:
    """The name and the kind of a column.

    ``integer`` covers all widths of integers, ``number`` floats and decimals, ``text`` also enums, dictionaries and
    UUIDs. ``other`` columns (lists, structs, binary, times of day, ...) cannot be a privacy unit, a key or a value.
    """

    name: str
    kind: Kind


@dataclass(frozen=True, slots=True)
class Schema:
    """The columns of a table, in the table's order."""

    columns: tuple[Column, ...]

    @property
    def column_names(self) -> tuple[str, ...]:
        """The names of the columns, in order."""
        return tuple(column.name for column in self.columns)

    def find_column(self, name: str) -> Column:
        """Return the column of this exact name; ``SchemaError`` lists the columns and suggests the closest.

        >>> table = Schema((Column("age", "integer"), Column("city", "text")))
        >>> table.find_column("age")
        Column(name='age', kind='integer')
        >>> table.find_column("cty")
        Traceback (most recent call last):
        tightrope.errors.SchemaError: column: there is no column 'cty'; did you mean 'city'? columns: 'age', 'city'
        """
        for column in self.columns:
            if column.name == name:
                return column
        nearest = suggest_nearest(name, self.column_names)
        columns = f"columns: {quoted_names(self.column_names)}"
        text = f"there is no column {name!r}; {f'{nearest} ' if nearest else ''}{columns}"
        raise SchemaError.from_text("column", text)
