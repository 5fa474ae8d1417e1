"""`tracing passes`, and the views of its answer."""
