"""Exact integer noise: tables of weights, their privacy loss, and sampling."""
