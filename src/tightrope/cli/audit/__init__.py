"""The command tightrope audit: samples from files or from a function, and what they prove; knows no plan."""
