"""`tracing minify`: its options, its trials, and the script that it writes."""

from tracing.cli.narrow.minify import command  # noqa: F401  # registers it
