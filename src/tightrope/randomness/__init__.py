"""Exact draws from the operating system's bits; knows neither noise laws nor tables of people."""
