"""`tracing bisect` and what it searches with."""

from tracing.cli.bisect import command  # noqa: F401  # registers it
