"""`tracing bisect`, and the judges and builders that it shares with `tracing reduce`."""
