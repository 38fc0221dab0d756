"""Moments that never die out: the integral of a loss smoothed a little, and what that changed; knows no lattice."""
