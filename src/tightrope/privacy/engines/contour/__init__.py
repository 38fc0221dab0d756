"""Laws with densities: the integral through the saddle point, its lines and nodes; knows no other engine."""
