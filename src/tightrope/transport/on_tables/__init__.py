"""Couplings on tables: points, counts, saved files, jobs; the only room here that knows the engines."""
