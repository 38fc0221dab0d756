"""Plans as files: read key by key, or written for a table; decide nothing."""
