"""A table that questions can be asked of, wherever it lives."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tightrope.engines.backends.backend import Backend
from tightrope.engines.backends.known import of
from tightrope.engines.request import Grouped, Request
from tightrope.engines.schema import Schema
from tightrope.engines.snapshot.collect import collect
from tightrope.engines.snapshot.rows import check, used_columns
from tightrope.errors import InputError, SchemaError

if TYPE_CHECKING:
    import ibis.expr.types as ir

Loader = Callable[[Sequence[str]], "ir.Table"]
"""Gives an ibis table that holds at least the named columns."""


@dataclass(frozen=True, slots=True)
class Table:
    """A source, opened: its schema is known, its data has not been read.

    ``source_kind`` is one of ``parquet, csv, duckdb, pandas, polars, arrow, spark, ibis``.
    """

    schema: Schema
    source_kind: str
    _backend: Any = field(repr=False)
    _load: Loader = field(repr=False)

    @property
    def engine(self) -> Backend:
        """What is particular about the engine that it lives in."""
        return of(self._backend)

    def chosen(self, names: Sequence[str]) -> tuple[Any, ir.Table]:
        """The back end and a table of exactly these columns, for jobs; ``SchemaError`` for a name that is none."""
        for name in names:
            self.schema.column(name)
        return self._backend, self._load(names).select(*names)

    def collect(self, request: Request) -> Grouped:
        """The exact integers that a request asks for, by group: private data, to be noised before anyone sees them.

        Adding or removing one person changes each integer by exactly what that person's own bounded rows add. The
        answer depends neither on the order of rows nor on threads. Rules:

        - a row whose person is NULL or NaN is dropped; with ``person=None`` each row is a person;
        - a NULL key is a key of its own, ``None``; a NaN key is NULL; -0.0 equals 0.0;
        - values that are NULL or NaN are not usable; infinities are clamped; booleans are 0 and 1.

        Raises ``SchemaError`` when a column is missing or has a kind that cannot serve, ``EngineError`` when the
        engine fails, without a value from the data.
        """
        if not isinstance(request, Request):
            raise InputError("request", request, "a tightrope.engines.Request")
        check(self.schema, request)
        return collect(self._load(used_columns(request)), self._backend, self.schema, request)


def check_names(names: Iterable[object]) -> None:
    """``SchemaError`` unless there are columns and each has a name of its own that is text and not empty."""
    seen: set[object] = set()
    for name in names:
        if not isinstance(name, str) or not name:
            raise SchemaError("column", name, "a name that is text and not empty", "rename the column")
        if name in seen:
            raise SchemaError("column", name, "the name of one column only", "rename one of them")
        seen.add(name)
    if not seen:
        raise SchemaError("columns", [], "at least one column")
