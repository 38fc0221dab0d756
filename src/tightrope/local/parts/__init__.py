"""What mechanisms are built from: odds, bits, losses, tallies, estimates; know no mechanism."""
