"""Persons with more rows than may count, found once for all requests that have the same bound on them.

Who is found is looked at closely, and nothing else follows from it: of a person whose rows keep the bound, none is
dropped. So it does no harm that rows are counted before a request's own condition and keys leave some of them out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tightrope.engines.backends.column_types import identity
from tightrope.engines.backends.known import of
from tightrope.engines.guard import guarded
from tightrope.engines.request import PersonBounds, Request
from tightrope.engines.snapshot import bounding
from tightrope.engines.snapshot.bounding import rows_alone
from tightrope.engines.snapshot.rows import Rows

if TYPE_CHECKING:
    import ibis.expr.types as ir

STEP = "find who exceeds a bound"


@dataclass(frozen=True, slots=True)
class Crowds:
    """The persons of one snapshot, by their column and the bound on their rows; tables are dropped with the stack."""

    backend: Any
    table: ir.Table
    shared: frozenset[PersonBounds]
    stack: ExitStack
    _found: dict[PersonBounds, ir.Table] = field(default_factory=dict)

    @classmethod
    def of(cls, backend: Any, table: ir.Table, requests: Sequence[Request], stack: ExitStack) -> Crowds:
        """For bounds of several requests that the number of a person's rows decides."""
        alone = (one for one in requests if one.bounds.person and rows_alone(one.bounds, grouped=bool(one.by)))
        asked = Counter(_plain(one.bounds) for one in alone)
        return cls(backend, table, frozenset(bounds for bounds, many in asked.items() if many > 1), stack)

    @contextmanager
    def persons(self, narrow: Rows, bounds: PersonBounds) -> Iterator[ir.Table]:
        """A table of all (column ``person``) who exceed a bound in these rows, others perhaps among them."""
        plain = _plain(bounds)
        if plain not in self.shared or not rows_alone(bounds, grouped=bool(narrow.keys)):
            with self._held(bounding.over_bound(narrow, bounds)) as few:
                yield few
            return
        if plain not in self._found:
            everybody = guarded(STEP, lambda: bounding.over_bound(self._everybody(plain), plain))
            self._found[plain] = self.stack.enter_context(self._held(everybody))
        yield self._found[plain]

    def _everybody(self, bounds: PersonBounds) -> Rows:
        """All rows that are anybody's, and nothing of them but whose they are."""
        assert bounds.person is not None  # noqa: S101 - of() and _bounded ask nothing else
        people = self.table.select(person=identity(self.table[bounds.person]))
        return Rows(people.filter(people["person"].notnull()), (), ())

    def _held(self, persons: ir.Table) -> AbstractContextManager[ir.Table]:
        return of(self.backend).materialised(STEP, self.backend, persons)


def _plain(bounds: PersonBounds) -> PersonBounds:
    """The bound on the number of rows alone."""
    return PersonBounds(bounds.person, bounds.rows, bounds.rows, bounds.rows)
