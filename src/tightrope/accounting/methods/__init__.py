"""Methods that compute δ of a composition: closed forms, lattices, the contour integral, grids, sums."""
