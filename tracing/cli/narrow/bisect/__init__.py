"""`tracing bisect`, and the judges and builders that it shares with `tracing reduce`."""

from tracing.cli.narrow.bisect import command  # noqa: F401  # registers it
