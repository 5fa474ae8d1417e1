"""Intercept kernel launches: launchers, roles of arguments, memory, streams."""
