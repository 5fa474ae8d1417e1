"""Which compiler pass first makes a result bad, and which input is enough to show it."""
