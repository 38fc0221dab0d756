"""One file a mechanism: what a person reports; independent of studies, limits and tables."""
