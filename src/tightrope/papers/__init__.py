"""The papers' statements as executable checks: our number, theirs, and a verdict."""
