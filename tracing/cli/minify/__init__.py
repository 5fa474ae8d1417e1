"""`tracing minify`: its options, its trials, and the script that it writes."""

from tracing.cli.minify import command  # noqa: F401  # registers it
