"""randomness."""
