"""Runs as tables for SQL and Parquet."""
