"""Quantiles from noisy counts of a range's cells, on two levels; knows no session."""
