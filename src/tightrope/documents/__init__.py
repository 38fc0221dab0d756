"""Versioned, immutable data: guarantees, budgets and claims. It imports only ``tightrope.errors``."""

from tightrope.documents.budget import Budget, Guarantee

__all__ = ["Budget", "Guarantee"]
