"""What a table looks like from outside: names and kinds of columns, never a value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tightrope.errors import SchemaError, listed, nearest

Kind = Literal["integer", "number", "text", "boolean", "date", "timestamp", "other"]


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its name and what it can be used for.

    ``integer`` holds every width of integer, ``number`` floats and decimals, ``text`` also enums, dictionaries and
    UUIDs. ``other`` (lists, structs, binary, times of day, ...) can be neither a person, a key nor a value.
    """

    name: str
    kind: Kind


@dataclass(frozen=True, slots=True)
class Schema:
    """The columns of a table, in the table's order."""

    columns: tuple[Column, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns, in order."""
        return tuple(column.name for column in self.columns)

    def column(self, name: str) -> Column:
        """The column of this exact name; ``SchemaError`` lists what exists and suggests the closest.

        >>> table = Schema((Column("age", "integer"), Column("city", "text")))
        >>> table.column("age")
        Column(name='age', kind='integer')
        >>> table.column("cty")
        Traceback (most recent call last):
        tightrope.errors.SchemaError: expected column to be one of 'age', 'city', got column='cty'; did you mean 'city'?
        """
        for column in self.columns:
            if column.name == name:
                return column
        raise SchemaError("column", name, f"one of {listed(self.names)}", nearest(name, self.names))
