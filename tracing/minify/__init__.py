"""Reduce graphs that Dynamo captured, execute them, and write them as scripts."""
