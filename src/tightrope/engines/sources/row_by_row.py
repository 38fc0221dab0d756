"""Which ibis expressions are tables row by row: what is not known to look at one row alone is refused."""

from __future__ import annotations

from typing import Any

from tightrope.engines.guard import load

RELATIONS = (
    "DatabaseTable",
    "InMemoryTable",
    "UnboundTable",
    "Project",
    "Filter",
    "DropColumns",
    "DropNull",
    "FillNull",
)
"""Relations in which whether and how a row appears depends on that row alone."""
ROOMS = ("numeric", "logical", "strings", "temporal", "arrays", "structs", "maps", "json", "histograms", "geospatial")
"""Modules of ibis whose operations compute a value from values of the same row."""
SINGLE = (
    "Alias", "Field", "Literal", "Cast", "TryCast", "Coalesce", "Greatest", "Least", "NullIf", "IsNull", "NotNull",
    "SearchedCase", "SimpleCase", "TypeOf", "Hash", "HashBytes", "HexDigest", "Pi", "E", "Constant",
)  # fmt: skip
"""Operations of other modules that do. Not among them: functions of the user or of the engine, ``rowid``, ``now()``."""
BEYOND_A_ROW = ("Impure", "Reduction", "Analytic", "Subquery")


def not_by_row(expression: Any) -> list[str]:
    """The operations of an expression through which one person's rows reach another's, or that change as time does."""
    operations = load("ibis.expr.operations")
    relations = {type(node).__name__ for node in expression.op().find(operations.Relation)} - set(RELATIONS)
    values = {type(node).__name__ for node in expression.op().find(operations.Value) if not _of_one_row(node)}
    return sorted(relations | values)


def _of_one_row(node: Any) -> bool:
    operations = load("ibis.expr.operations")
    if isinstance(node, tuple(getattr(operations, kind) for kind in BEYOND_A_ROW)):
        return False
    return type(node).__name__ in SINGLE or type(node).__module__.rpartition(".")[2] in ROOMS
