"""The schema of a table: names and kinds of columns, without any values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from tightrope.errors import SchemaError, quoted_names, suggest_nearest

Kind = Literal["integer", "number", "text", "boolean", "date", "timestamp", "other"]

PYTHON_OBJECTS = "Python objects of no declared type"
"""The source type of pandas columns of objects: a type inferred from the values could depend on one person's value."""
_ONE_VALUE, _SECONDS = "make one text or number of it first", "make a number of it, such as seconds, or a text"
_TYPE_REMEDIES: Mapping[str, str] = {
    PYTHON_OBJECTS.lower(): "declare its kind, as in types={'city': 'text'}, or cast the column",
    **dict.fromkeys(("list", "[", "array", "struct", "map", "json", "union", "variant"), _ONE_VALUE),
    **dict.fromkeys(("binary", "blob", "bytea"), "write it as a text, such as hexadecimal digits"),
    **dict.fromkeys(("time", "interval", "duration", "delta", "period"), _SECONDS),
    "complex": "make two columns of its real and its imaginary part",
    "decimal": "cast it to a decimal of at most 38 digits, or to a double",
}
"""What to do about a type, by a part of its name in lower case; the part that comes first in the name applies."""


@dataclass(frozen=True, slots=True)
class Column:
    """The name and the kind of a column.

    ``integer`` covers all widths of integers, ``number`` floats and decimals, ``text`` also enums, dictionaries and
    UUIDs. ``other`` columns (lists, structs, binary, times of day, ...) cannot be a privacy unit, a key or a value.
    ``source_type`` is the name of its type in the source, for errors.
    """

    name: str
    kind: Kind
    source_type: str = field(default="", compare=False, repr=False)

    def refuse_other_kind(self, parameter: str, purpose: str) -> None:
        """Raise ``SchemaError`` with the column's type if it is of the kind "other"; ``purpose`` as in "be a group".

        >>> Column("tags", "other", "list<item: string>").refuse_other_kind("by", "be a group")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        tightrope.errors.SchemaError: by: the column 'tags' has the type list<item: string>, which cannot be a group...
        """
        if self.kind == "other":
            shown = f"the type {self.source_type}" if self.source_type else "a type that is not supported"
            if self.source_type == PYTHON_OBJECTS:
                shown = self.source_type
            lowered = self.source_type.lower()
            parts = sorted((part for part in _TYPE_REMEDIES if part in lowered), key=lowered.index)
            remedy = _TYPE_REMEDIES[parts[0]] if parts else "cast it first"
            text = f"the column {self.name!r} has {shown}, which cannot {purpose}; {remedy}"
            raise SchemaError.from_text(parameter, text)


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
