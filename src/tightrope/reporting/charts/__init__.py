"""Axes, curves and figures, independent of the pages."""

from tightrope.reporting.charts import plots

__all__ = ["plots"]
