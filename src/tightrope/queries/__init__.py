"""Queries: their parameters, the statistics they need from the tables, and their accuracy. Independent of sessions."""
