"""The papers, statement by statement, as something that is run: our number, theirs, and the verdict between them."""
