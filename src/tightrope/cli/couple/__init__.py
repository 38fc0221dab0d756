"""The commands of tightrope couple; know no question and no budget."""
