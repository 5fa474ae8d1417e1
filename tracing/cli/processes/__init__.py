"""Child processes of commands: one that a compiler may take down, one that records a launch once more."""
