"""Commands that start a debugger in the process that compiles."""
