"""How much Fisher information private reports about shares can carry, averaged over a prior; knows no limit."""
