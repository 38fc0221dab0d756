"""The HTML pages: one module per kind of document."""
