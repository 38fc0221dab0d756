"""Axes, curves and figures; know no page."""

from tightrope.reporting.charts import plots

__all__ = ["plots"]
