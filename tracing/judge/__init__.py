"""Every kernel has a referee: the FX nodes that it stands for, executed in float64 on its recorded inputs."""
