"""Commands that run a program."""
