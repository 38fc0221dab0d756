"""Exact integer laws as tables of whole weights: made, sampled, certified; know no named mechanism."""
