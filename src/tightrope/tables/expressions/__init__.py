"""Values computed from one row: a small typed language, its facts, and its form in the engine."""
