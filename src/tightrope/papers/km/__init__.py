"""Kawamoto, Murakami: local distribution obfuscation via probability coupling."""
