"""Engines: from a table to exact integers per group, bounded per person. The only door to ibis, DuckDB and Spark.

``open_source(...).collect(request)`` is all that a release needs; ``write_columns`` and ``folded`` do jobs on all rows,
batch by batch. Importing this package loads no engine.
"""

from tightrope.tables.expressions.expression import Expression, case, column, expression
from tightrope.tables.jobs import folded, write_columns
from tightrope.tables.labels import Labels
from tightrope.tables.public_table import PublicTable
from tightrope.tables.request import Distinct, Factor, FixedPoint, FixedProduct, Grouped, Measure, PersonBounds, Request
from tightrope.tables.schema import Column, Kind, Schema
from tightrope.tables.snapshot import Snapshot
from tightrope.tables.sources.csv import Dialect
from tightrope.tables.sources.frames import open_on_spark
from tightrope.tables.sources.parquet_folders import is_there
from tightrope.tables.sources.public_tables import Lookup, attached, lookup, lookup_in
from tightrope.tables.sources.source import open_source
from tightrope.tables.table import Table

__all__ = [
    "Column",
    "Dialect",
    "Distinct",
    "Expression",
    "Factor",
    "FixedPoint",
    "FixedProduct",
    "Grouped",
    "Kind",
    "Labels",
    "Lookup",
    "Measure",
    "PersonBounds",
    "PublicTable",
    "Request",
    "Schema",
    "Snapshot",
    "Table",
    "attached",
    "case",
    "column",
    "expression",
    "folded",
    "is_there",
    "lookup",
    "lookup_in",
    "open_on_spark",
    "open_source",
    "write_columns",
]
