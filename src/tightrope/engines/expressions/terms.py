"""What a question names: a column by its name, or an expression. A name of the table's is always that column."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tightrope.engines.expressions.facts import Facts, Rows, truth
from tightrope.engines.expressions.leaves import Column
from tightrope.engines.expressions.reading import read
from tightrope.engines.expressions.tree import Tree, columns_of
from tightrope.engines.expressions.written import Expression
from tightrope.engines.schema import Schema
from tightrope.errors import InputError

if TYPE_CHECKING:
    import ibis.expr.types as ir

Term = str | Tree
"""A column of the table by its name, or a tree."""


def term_of(given: str | Expression | Tree, schema: Schema) -> Term:
    """What is meant, checked against the schema: a text that is no column's name is read as an expression.

    Raises ``SchemaError`` for a column that is not there, ``InputError`` for what cannot be read or has no kind.
    """
    if isinstance(given, str) and given in schema.names:
        return given
    tree = given.tree if isinstance(given, Expression) else read(given) if isinstance(given, str) else given
    if not isinstance(tree, Tree):
        raise InputError("expression", type(given).__name__, "a column's name or an expression")
    tree.facts(schema)
    return tree.name if isinstance(tree, Column) else tree


def facts_of(term: Term, schema: Schema) -> Facts:
    """Kind and range."""
    if isinstance(term, Tree):
        return term.facts(schema)
    kind = schema.column(term).kind
    return truth() if kind == "boolean" else Facts(kind)


def reads(*terms: Term | None) -> tuple[str, ...]:
    """The columns of the table that are read, each once, in order."""
    found = [columns_of(term) if isinstance(term, Tree) else (term,) for term in terms if term is not None]
    return tuple(dict.fromkeys(name for names in found for name in names))


def computed(term: Term, rows: Rows) -> ir.Column:
    """The engine's column: as it is stored, or computed."""
    return term.compiled(rows) if isinstance(term, Tree) else rows.table[term]
