"""Axes, curves and figures; know no page."""

from tightrope.report.pictures import plots

__all__ = ["plots"]
