"""The least noise of several equal releases, by the exact composed curve."""
