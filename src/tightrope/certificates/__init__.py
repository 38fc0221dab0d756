"""Inert, versioned data: guarantees, budgets, claims; knows nothing but errors."""

from tightrope.certificates.budget import Budget
from tightrope.certificates.guarantee import Guarantee

__all__ = ["Budget", "Guarantee"]
