"""Noise mechanisms: loss, errors and samplers. Independent of budgets and tables."""
