"""The mechanism that hides a group, and the distances by which it moves values."""
