"""The commands of tightrope local, independent of couplings."""
