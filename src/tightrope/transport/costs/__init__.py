"""Laws on points, and what it costs to move mass between these; know no solver."""
