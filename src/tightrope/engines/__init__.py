"""Engines: from a table to exact integers per group, bounded per person. The only door to ibis and DuckDB.

``open_source(...).collect(request)`` is all of it. Importing this package loads neither.
"""

from tightrope.engines.request import FixedPoint, Grouped, Measure, PersonBounds, Request
from tightrope.engines.schema import Column, Kind, Schema
from tightrope.engines.source import open_source
from tightrope.engines.table import Table

__all__ = [
    "Column",
    "FixedPoint",
    "Grouped",
    "Kind",
    "Measure",
    "PersonBounds",
    "Request",
    "Schema",
    "Table",
    "open_source",
]
