"""Inert, versioned data: guarantees, budgets, claims; knows nothing but errors."""

from tightrope.documents.budget import Budget, Guarantee

__all__ = ["Budget", "Guarantee"]
