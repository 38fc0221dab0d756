"""Families and ways to account for them side by side, as figures and tables show them; nothing rests on it."""
