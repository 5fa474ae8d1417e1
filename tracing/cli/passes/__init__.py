"""`tracing passes`, and the views of its answer."""

from tracing.cli.passes import command  # noqa: F401  # registers it
