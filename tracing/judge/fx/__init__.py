"""The FX graphs of a run, executed."""
