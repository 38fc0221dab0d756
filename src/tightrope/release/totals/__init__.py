"""Totals and their parts: which are proven to agree, and least squares between their noisy numbers; draws nothing."""
