"""The graphs that Dynamo traced, judged."""
