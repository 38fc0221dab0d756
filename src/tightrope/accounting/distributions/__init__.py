"""Distributions of the privacy loss and their composition, independent of the methods that compute δ."""
