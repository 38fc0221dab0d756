"""Engines: from a table to exact integers per group, bounded per person. Only this package
imports ibis, DuckDB and Spark.

``open_source(...).collect(request)`` is sufficient for a release; ``write_columns`` and ``sum_over_batches`` do jobs
on all rows, batch by batch. Importing this package loads no engine.
"""

from tightrope.tables.expressions.expression import Expression, case, column, expression
from tightrope.tables.jobs import sum_over_batches, write_columns
from tightrope.tables.labels import Labels
from tightrope.tables.public_table import PublicTable
from tightrope.tables.request import (
    ContributionBounds,
    DistinctCount,
    Factor,
    FixedPoint,
    FixedProduct,
    GroupTotals,
    Measure,
    Request,
)
from tightrope.tables.schema import Column, Kind, Schema
from tightrope.tables.snapshot import Snapshot
from tightrope.tables.sources.csv import Dialect
from tightrope.tables.sources.frames import open_on_spark
from tightrope.tables.sources.parquet_folders import path_exists
from tightrope.tables.sources.public_tables import (
    PublicTableSource,
    attach_public_tables,
    public_table,
    public_table_source,
)
from tightrope.tables.sources.source import open_source
from tightrope.tables.table import Table

__all__ = [
    "Column",
    "ContributionBounds",
    "Dialect",
    "DistinctCount",
    "Expression",
    "Factor",
    "FixedPoint",
    "FixedProduct",
    "GroupTotals",
    "Kind",
    "Labels",
    "Measure",
    "PublicTable",
    "PublicTableSource",
    "Request",
    "Schema",
    "Snapshot",
    "Table",
    "attach_public_tables",
    "case",
    "column",
    "expression",
    "open_on_spark",
    "open_source",
    "path_exists",
    "public_table",
    "public_table_source",
    "sum_over_batches",
    "write_columns",
]
