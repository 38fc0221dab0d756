"""What a promise says in words that anybody understands, and the numbers in them; knows no document."""
