"""Judge each launch by the FX nodes that its kernel implements, executed in float64 on its inputs."""
