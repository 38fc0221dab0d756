"""Local privacy: collect without being trusted, and know what it costs."""
