"""Couplings on tables: points, counts, saved files and jobs on the database backends."""
