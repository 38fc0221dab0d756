"""Exact sampling from the operating system's random bits, independent of noise distributions and tables."""
