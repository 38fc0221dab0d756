"""Mechanisms that ask each person for one level of a tree: quantiles, frequent values."""
