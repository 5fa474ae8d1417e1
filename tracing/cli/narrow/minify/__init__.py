"""`tracing minify`: its options, its trials, and the script that it writes."""
