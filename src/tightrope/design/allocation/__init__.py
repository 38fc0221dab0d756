"""Several answers under one budget: worst splits, units, one common size; knows no question."""
