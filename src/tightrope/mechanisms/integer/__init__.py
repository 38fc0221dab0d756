"""Mechanisms whose noise is a whole number, sampled exactly; know nothing of the real-valued ones."""
