"""Diagnose a failed compile: kernel, pass, operator or generated code, with the Python line."""
