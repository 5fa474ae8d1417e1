"""Child processes of commands: one that the compiler may crash, and one that records a launch once more."""
