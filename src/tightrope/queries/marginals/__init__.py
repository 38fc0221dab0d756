"""The question ``marginals``: all tables of counts of several columns, consistent with each other."""
