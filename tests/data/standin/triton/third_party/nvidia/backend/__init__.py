"""A package that lies outside of python/, as Triton's backends do."""
