"""Geng, Ding, Guo, Kumar: the least amplitude and power of noise for approximate differential privacy."""
