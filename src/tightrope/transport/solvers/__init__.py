"""One file for each method: couplings, distances, barycenters, each with a proof of optimality."""
