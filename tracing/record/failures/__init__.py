"""Say what failed in a compile: kernel, pass, operator or generated code, with the Python line."""
