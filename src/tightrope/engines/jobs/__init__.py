"""Work on all rows, batch by batch, each row once; knows no bounding and no randomness."""
