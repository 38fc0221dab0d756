"""Laws of a mechanism that runs on a random part of the data; knows no engine."""
