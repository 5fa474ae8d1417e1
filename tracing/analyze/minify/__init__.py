"""Delta debugging of an FX graph that is executed: to few nodes, then to simple inputs."""
