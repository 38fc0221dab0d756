"""The rows of a plan, read once: every question of it is asked of the same rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tightrope.engines.request import Grouped, Request
from tightrope.engines.schema import Schema
from tightrope.engines.snapshot.collect import collect
from tightrope.engines.snapshot.crowds import Crowds
from tightrope.engines.snapshot.memory import refuse_large
from tightrope.engines.snapshot.rows import check
from tightrope.errors import InputError

if TYPE_CHECKING:
    import ibis.expr.datatypes as dt
    import ibis.expr.types as ir


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Private rows: those that there were when it was made, whatever becomes of the source.

    ``types`` are the columns' types in the source, which keys are given in.
    """

    schema: Schema
    types: Mapping[str, dt.DataType] = field(repr=False)
    _crowds: Crowds = field(repr=False)
    _rows: ir.Table = field(repr=False)

    def collect(self, request: Request) -> Grouped:
        """The exact integers that a request asks for, by group: private data, to be noised before anyone sees them.

        Adding or removing one person changes each integer by exactly what that person's own bounded rows add; one of
        ``Distinct``, for others may have the same values, by at most that. The
        answer depends neither on the order of rows nor on threads. Rules:

        - a row whose person is NULL is dropped, and so is one whose person is a float but no whole number below 2^53
          (of 32 bits: 2^24), for rounding may have made one of two; with ``person=None`` each row is a person;
        - a text of more than 10,000 bytes is missing, whatever it is used for;
        - a NULL key is a key of its own, ``None``; a NaN key is NULL; -0.0 equals 0.0;
        - values that are NULL or NaN are not usable; infinities are clamped; booleans are 0 and 1.

        Raises ``SchemaError`` when a column is missing or has a kind that cannot serve, ``InputError`` when two given
        keys are one in the column's type or one row could take too much memory, ``EngineError`` when the engine fails,
        without a value from the data.
        """
        if not isinstance(request, Request):
            raise InputError("request", type(request), "a tightrope.engines.Request")
        check(self.schema, request)
        refuse_large(request, self.schema)
        return collect(self._rows, self.types, self._crowds, self.schema, request)
