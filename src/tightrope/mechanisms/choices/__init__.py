"""Choosing among candidates, in place of a number with noise."""
