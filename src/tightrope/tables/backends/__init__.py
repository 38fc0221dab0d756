"""Declared differences between the engines, and their column types; independent of requests and persons."""
