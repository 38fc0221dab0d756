"""Parts of what every question is told: its groups, and words for readers; know no question."""
