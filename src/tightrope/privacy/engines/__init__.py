"""Ways to compute δ(ε) of a composition as an interval that holds it; knows no curve and no mechanism."""
