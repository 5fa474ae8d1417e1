"""The guards, graph breaks and recompilations of a program."""
