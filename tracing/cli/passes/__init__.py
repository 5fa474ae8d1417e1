"""`tracing passes` and what it shows."""

from tracing.cli.passes import command  # noqa: F401  # registers it
