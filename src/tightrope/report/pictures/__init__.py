"""Axes, curves and figures; know no page."""
