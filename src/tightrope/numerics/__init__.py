"""Checks at the door, and arithmetic that keeps its digits; knows no privacy."""
