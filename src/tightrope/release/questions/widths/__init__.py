"""How far noise reaches, alone and two numbers of it together, and intervals from it; knows no question."""
