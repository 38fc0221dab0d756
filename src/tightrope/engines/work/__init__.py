"""What is done to rows, batch by batch, and the file that it is written to; knows no engine and no table."""
