"""`tracing passes`, and the views of its answer."""

from tracing.cli.look.passes import command  # noqa: F401  # registers it
