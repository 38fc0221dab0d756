"""What follows from a profile: ε at a δ, trade-off, attacks, the Gaussian limit; knows no law by name."""
