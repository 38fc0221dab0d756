"""The HTML pages: one module a kind of document."""
