"""Questions with their noise, certified within a share of a budget; draws nothing, charges nothing, reads no table."""
