"""Distributions on points and transport costs between them; independent of the solvers."""
