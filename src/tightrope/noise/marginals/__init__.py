"""Marginals: consistent tables of counts of the same rows, from few integers with noise."""
