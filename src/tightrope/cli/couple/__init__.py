"""The commands of tightrope couple, independent of questions and budgets."""
