"""A kernel launch as it happens: interception, launchers, roles of arguments, memory, streams."""
