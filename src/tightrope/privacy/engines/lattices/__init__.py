"""Atoms and cells on one lattice: transforms, and the grid that stands behind all others; knows no contour."""
