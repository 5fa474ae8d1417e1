"""`tracing bisect`, `tracing reduce`, and their judges and builders."""

from tracing.cli.bisect import command  # noqa: F401  # registers it
