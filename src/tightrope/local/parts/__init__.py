"""Building blocks of mechanisms: odds, bits, losses, tallies, estimates."""
