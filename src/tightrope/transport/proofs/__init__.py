"""Why a coupling is optimal: duals, cuts, repaired potentials; trust no solver and know none."""
