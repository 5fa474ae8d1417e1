"""Runs as one HTML file that needs no network: `tracing report`."""
