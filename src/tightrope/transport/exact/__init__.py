"""Distributions, plans and tables in integers, without rounding; independent of costs."""
