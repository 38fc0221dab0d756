"""A local page to edit a plan in the browser: privacy unit, questions and guarantee. Listens on this machine only."""
