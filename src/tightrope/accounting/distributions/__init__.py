"""What a privacy loss is, as a law, and how laws add up; knows no engine."""
