"""The least noise of one answer as a linear program, with its proof."""
