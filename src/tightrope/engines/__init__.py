"""Engines: from a table to exact integers per group, bounded per person. The only door to ibis, DuckDB and Spark.

``open_source(...).collect(request)`` is all that a release needs; ``written`` and ``folded`` do jobs on all rows, batch
by batch. Importing this package loads no engine.
"""

from tightrope.engines.expressions.written import Expression, case, column, expression
from tightrope.engines.jobs.batches import folded, written
from tightrope.engines.labels import Labels
from tightrope.engines.request import (
    Distinct,
    Factor,
    FixedPoint,
    FixedProduct,
    Grouped,
    Measure,
    PersonBounds,
    Request,
)
from tightrope.engines.schema import Column, Kind, Schema
from tightrope.engines.snapshot.public import PublicTable
from tightrope.engines.snapshot.snapshot import Snapshot
from tightrope.engines.sources.dialect import Dialect
from tightrope.engines.sources.frames import open_on_spark
from tightrope.engines.sources.lookups import Lookup, attached, lookup, lookup_in
from tightrope.engines.sources.partitions import is_there
from tightrope.engines.sources.source import open_source
from tightrope.engines.table import Table

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
    "written",
]
