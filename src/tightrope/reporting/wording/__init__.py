"""Sentences and numbers of reports, terminals and pages."""
