"""The only doors to POT and OR-tools; know no cost and no proof."""
