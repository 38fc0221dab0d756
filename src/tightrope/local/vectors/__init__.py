"""Mechanisms for vectors: points of a cube, points of a ball."""
