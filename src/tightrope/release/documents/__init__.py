"""Plans as files: read as a frozen document, or written for a table; decide nothing."""
