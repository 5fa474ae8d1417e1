"""The options of commands as records: help, defaults, and the values that options stand for."""
