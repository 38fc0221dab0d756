"""Sums of positive terms alone: recurrences and enumeration; know no transform and no contour."""
