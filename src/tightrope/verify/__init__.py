"""Independent re-proof of what Tightrope writes: intervals and whole numbers, and no code of what it checks."""
