"""Entries on disk: a chain in SQLite or PostgreSQL, and what can go wrong with it; knows no limit and no plan."""
