"""Records the choices of autotuners, and makes them choose given configurations."""
