"""`tracing serve`: the pages of `tracing report` while a run is being recorded, and the start of cases."""
