"""Kinds of questions that are answered from several noisy numbers: ratios, moments, the largest; knows no session."""
