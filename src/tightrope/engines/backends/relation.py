"""Names of tables in databases: ``table`` or ``schema.table``, a part with a dot or a quote in quotes, as in SQL."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Self

from tightrope.errors import InputError

_PART = r'[^."]+|"(?:[^"]|"")+"'
_NAME = re.compile(rf"(?:({_PART})\.)?({_PART})")


@dataclass(frozen=True, slots=True)
class Relation:
    """A table or view by its two names.

    >>> Relation.of("visits", "public"), str(Relation.of('clinic."a.b"', "public"))
    (Relation(schema='public', name='visits'), 'clinic."a.b"')
    """

    schema: str
    name: str

    @classmethod
    def of(cls, text: object, schema: str) -> Self:
        """The table, in this schema where none is named. Capitals count, in quotes or not."""
        found = _NAME.fullmatch(text) if isinstance(text, str) else None
        if found is None:
            raise InputError("table", text, "'table' or 'schema.table'", "put a part that has a dot in double quotes")
        before, name = found.groups()
        return cls(_plain(before) if before else schema, _plain(name))

    def __str__(self) -> str:
        return f"{_spelled(self.schema)}.{_spelled(self.name)}"

    def within(self, schema: str) -> str:
        """As short as it can be said where this schema is understood."""
        return _spelled(self.name) if self.schema == schema else str(self)


def _spelled(name: str) -> str:
    plain = name and not any(letter in name for letter in '."')
    return name if plain else '"' + name.replace('"', '""') + '"'


def _plain(part: str) -> str:
    return part[1:-1].replace('""', '"') if part.startswith('"') else part
