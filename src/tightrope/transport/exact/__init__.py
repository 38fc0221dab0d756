"""Laws, plans and tables in whole numbers, so that nothing is left to rounding; know no cost."""
