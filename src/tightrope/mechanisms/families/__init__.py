"""Families of whole-number noise, each declared once; they know neither budgets nor the searches that choose."""
