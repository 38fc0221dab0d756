"""Argument checks and numerically accurate arithmetic, independent of privacy."""
