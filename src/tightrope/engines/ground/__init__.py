"""What is done to rows, batch by batch, and files of our own that it is written to; knows no engine and no table."""
