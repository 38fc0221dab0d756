"""One file a method: couplings, distances, barycentres, each proven; know no groups and no privacy."""
