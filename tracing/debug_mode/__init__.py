"""torch's DebugMode with every Triton launch in its log."""
