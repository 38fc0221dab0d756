"""The commands of tightrope local; know nothing of couplings."""
