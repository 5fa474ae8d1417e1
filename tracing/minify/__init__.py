"""Graphs that Dynamo captured, cut down, executed, and written as scripts."""
