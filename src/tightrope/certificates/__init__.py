"""Inert, versioned data: guarantees, budgets, claims."""

from tightrope.certificates.budget import Budget
from tightrope.certificates.guarantee import Guarantee

__all__ = ["Budget", "Guarantee"]
