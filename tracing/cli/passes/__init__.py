"""`tracing passes` and its views."""

from tracing.cli.passes import command  # noqa: F401  # registers it
